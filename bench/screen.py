"""The table as people see it: one line as soon as it is known."""

from __future__ import annotations

import sys
from typing import Final, TextIO

from bench.figures import Figure

SIGNS: Final = {"✓": "+", "✗": "x", "×": "x", "≥": ">=", "≤": "<=", "→": "->", "·": "-"}


class Screen:
    """A stream that takes lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str = "") -> None:
        """Write one line, whatever the stream's encoding makes of its signs."""
        encoding = self._stream.encoding or "ascii"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for fine, plain in SIGNS.items():
                text = text.replace(fine, plain)
            text = text.encode(encoding, "replace").decode(encoding)
        print(text.rstrip(), file=self._stream, flush=True)

    def heading(self) -> None:
        """Say what the columns are."""
        self.say(
            f"\n    {'':<44}{'reached':>18}  {'beside':>9}  {'ratio':>5}  {'gates':<18} against"
        )

    def figure(self, figure: Figure) -> None:
        """Write one line of the table."""
        mark = {True: "✓", False: "✗", None: " "}[figure.is_met]
        value = f"{_number(figure.value)} {figure.unit}"
        raw = "" if figure.raw is None else _number(figure.raw)
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        gates = ", ".join(map(str, figure.gates))
        name = f"{figure.measure}: {figure.name}"
        self.say(
            f"  {mark} {name:<44}{value:>18}  {raw:>9}  {ratio:>5}  {gates:<18} {figure.against}"
        )
        if figure.note:
            self.say(f"      {figure.note}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def default() -> Screen:
    """Return the screen of this process."""
    return Screen(sys.stdout)
