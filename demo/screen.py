"""What the person sees: a line that moves at a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from demo.ledger import Verdict

PLAIN_EVERY: Final = 2.0
WIDTH_OF_BAR: Final = 28
SIGNS: Final = {
    "✓": "+", "✗": "x", "✂": "%", "↺": "<", "█": "#", "░": ".", "●": "o", "✖": "x", "·": "-",
}  # fmt: skip


class Screen:
    """One stream, with a line of progress at its foot when it is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._next_plain = 0.0

    def headline(self, database: str) -> None:
        """Say what plays."""
        python = ".".join(map(str, sys.version_info[:3]))
        django = metadata.version("django")
        self.say(f"django-once demo · Django {django} · Python {python} · {database}")

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Say how long something took, once it is done."""
        began = time.monotonic()
        yield
        self.say(f"  ✓ {text:<58} {time.monotonic() - began:6.1f} s")

    def begin(self) -> None:
        """Let the play's time begin."""
        self._began = time.monotonic()
        self._next_plain = PLAIN_EVERY

    @property
    def seconds(self) -> float:
        """How long the play has lasted."""
        return time.monotonic() - self._began

    def tell(self, text: str) -> None:
        """Say what happened, and when."""
        self.say(f"  {self._clock()}  {text}")

    def say(self, text: str = "") -> None:
        """Write one line, whatever the stream's encoding makes of its signs."""
        end = "\r\x1b[K" if self._is_live else ""
        self._stream.write(f"{end}{self._written(text).rstrip()}\n")
        self._stream.flush()

    def progress(self, done: int, orders: int, text: str, *, is_last: bool = False) -> None:
        """Show how far the play is: at once at a terminal, else every two seconds."""
        full = round(WIDTH_OF_BAR * min(1.0, done / orders))
        bar = "█" * full + "░" * (WIDTH_OF_BAR - full)
        line = f"  {self._clock()}  {bar}  {text}"
        if self._is_live and not is_last:
            width = shutil.get_terminal_size((100, 24)).columns
            self._stream.write(f"\r\x1b[K{self._written(line)[: width - 1]}")
            self._stream.flush()
        elif is_last or self.seconds >= self._next_plain:
            self._next_plain = self.seconds + PLAIN_EVERY
            self.say(line)

    def verdict(self, verdict: Verdict) -> None:
        """Show the books."""
        self.say()
        for name, number, words in verdict.lines():
            self.say(f"  {name:<12} {number:>9}   {words}")
        self.say()
        for complaint in verdict.complaints:
            self.say(f"  ✗ {complaint}")
        if verdict.is_good:
            self.say(f"  Nothing lost, nothing doubled.  PASSED in {verdict.story.seconds:.0f} s")
        else:
            self.say(f"  The books do not balance.  FAILED after {verdict.story.seconds:.0f} s")

    def _clock(self) -> str:
        minutes, seconds = divmod(int(self.seconds), 60)
        return f"{minutes:02}:{seconds:02}"

    def _written(self, text: str) -> str:
        encoding = self._stream.encoding or "ascii"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for fine, plain in SIGNS.items():
                text = text.replace(fine, plain)
            return text.encode(encoding, "replace").decode(encoding)
        return text
