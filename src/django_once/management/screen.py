"""What people see: aligned columns, colours on a terminal only, JSON for programs, one question."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.management.color import no_style
from django.utils import timezone

USAGE: Final = 2
WIDTH: Final = 30
NARROWEST: Final = 16
GAP: Final = "  "
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


@dataclass(frozen=True, slots=True)
class Cell:
    """A text in a table, and the role in Django's palette that colours it."""

    text: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title, whether it holds numbers, and what a narrow terminal may do to it.

    Its texts may lose their beginnings, down to NARROWEST letters. Columns with a `spare` go
    altogether, the largest first.
    """

    title: str
    is_number: bool = False
    is_cut: bool = False
    spare: int = 0


class Screen:
    """Where a verb writes to."""

    def __init__(self, command: BaseCommand, options: dict[str, Any]) -> None:
        self.out = command.stdout
        self.error = command.stderr
        self.verbosity = int(options.get("verbosity", 1))
        self.is_json = bool(options.get("json"))
        forced = bool(options.get("force_color"))
        plain = not forced and (bool(os.environ.get("NO_COLOR")) or not self.out.isatty())
        self._style: Any = no_style() if plain else command.style
        # Else it would take colours away again where there is no terminal.
        self.out.style_func = None
        for stream in (self.out, self.error):
            _write_what_is_missing(stream)

    def say(self, text: str = "", role: str = "") -> None:
        """Write a line."""
        self.out.write(self.coloured(text, role))

    def tell(self, text: str) -> None:
        """Write a line beside the output: what is no answer."""
        self.error.write(text, lambda line: line)

    def json(self, value: Any) -> None:
        """Write a value for programs."""
        self.out.write(json.dumps(value, ensure_ascii=False, default=_plain))

    def coloured(self, text: str, role: str) -> str:
        """Return a text in the colour of a role, such as ERROR or SUCCESS."""
        colour: Callable[[str], str] = getattr(self._style, role, str) if role else str
        return colour(text)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell | str]]) -> None:
        """Write rows under titles, each column as wide as it must be."""
        titles = [Cell(column.title, "MIGRATE_HEADING") for column in columns]
        cells = [titles, *([_cell(value) for value in row] for row in rows)]
        widths = [max(len(row[n].text) for row in cells) for n in range(len(columns))]
        if self.out.isatty():
            widths = fitted(columns, widths, shutil.get_terminal_size().columns)
        for row in cells:
            line = [
                self._fitted(cell, width, column.is_number)
                for cell, width, column in zip(row, widths, columns, strict=True)
                if width
            ]
            self.out.write(GAP.join(line).rstrip())

    def ask(self, question: str) -> bool:
        """Return whether somebody agrees; refuse to guess when nobody is there."""
        self._aside(f"{question} [y/N] ", ending="")
        answer = sys.stdin.readline()
        if not answer:
            self._aside("")
            raise CommandError(
                "Nobody answered, so nothing was changed: add --yes to go on without a question.",
                returncode=USAGE,
            )
        if answer.strip().lower() in ("y", "yes"):
            return True
        self._aside("Nothing was changed.")
        return False

    def progress(self, title: str, total: int) -> Progress:
        """Return a bar that shows how far a work of so many steps is, on a terminal only."""
        return Progress(self.error, title, total)

    def _aside(self, text: str, ending: str = "\n") -> None:
        """Write to a person, past the program that reads the output."""
        stream = self.error if self.is_json else self.out
        stream.write(text, str, ending=ending)
        stream.flush()

    def _fitted(self, cell: Cell, width: int, is_number: bool) -> str:
        # Padded first: colours are characters too.
        whole = cell.text if len(cell.text) <= width else f"…{cell.text[1 - width :]}"
        text = whole.rjust(width) if is_number else whole.ljust(width)
        return self.coloured(text, cell.role)


class Progress:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, line: Any, title: str, total: int) -> None:
        self._line = line
        self._title = title
        self._total = total
        self._is_shown = bool(line.isatty())
        self.done = 0

    def advance(self, by: int) -> None:
        """Show that so much more is done."""
        self.done += by
        if self._is_shown:
            share = min(1.0, self.done / self._total) if self._total else 1.0
            bar = ("█" * int(share * WIDTH)).ljust(WIDTH, "░")
            self._write(f"\r{self._title} {bar} {self.done:,} of {max(self.done, self._total):,}")

    def end(self) -> None:
        """Leave the line to others."""
        if self._is_shown:
            self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        self._line.write(text, lambda line: line, ending="")
        self._line.flush()


def fitted(columns: Sequence[Column], widths: Sequence[int], most: int) -> list[int]:
    """Return widths that fit into a line, as far as that can be; 0 is a column to leave out."""
    fitting = list(widths)
    for n in sorted(range(len(columns)), key=lambda n: -columns[n].spare):
        least = [
            min(width, NARROWEST) if column.is_cut else width
            for column, width in zip(columns, fitting, strict=True)
        ]
        if _line(least) <= most or not columns[n].spare:
            break
        fitting[n] = 0
    for n, column in enumerate(columns):
        over = _line(fitting) - most
        if column.is_cut and over > 0:
            fitting[n] = max(min(fitting[n], NARROWEST), fitting[n] - over)
    return fitting


def _line(widths: Sequence[int]) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + len(GAP) * (len(shown) - 1)


def add_json(parser: CommandParser) -> None:
    """Declare the option that asks for JSON."""
    parser.add_argument("--json", action="store_true", help="for programs: JSON with stable keys")


def length(seconds: float) -> str:
    """Return a time span as people say it: "0.3 s", "42 s", "5 m", "3 h", "12 d"."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0.0, seconds):.1f} s" if seconds < 10 else f"{int(seconds)} s"


def ago(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, or in how long it will be."""
    if moment is None:
        return "–"
    seconds = (now - moment).total_seconds()
    return f"{length(seconds)} ago" if seconds >= 0 else f"in {length(-seconds)}"


def written(moment: datetime | None) -> str:
    """Return a moment in the project's time zone."""
    if moment is None:
        return "–"
    shown = timezone.localtime(moment)
    return f"{shown:%Y-%m-%d %H:%M:%S}.{shown.microsecond // 1000:03d} {shown:%Z}".rstrip()


def iso(moment: datetime | None) -> str | None:
    """Return a moment as programs want it: in UTC, to the microsecond."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def written_json(value: Any) -> str:
    """Return a value as it stands in its column: JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def printable(text: str) -> str:
    """Return a stored text without what would steer the terminal."""
    return "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode()
        for one in text
    )


def one_line(text: str) -> str:
    """Return a stored text as one line without what would steer the terminal."""
    return printable(text).replace("\n", " ")


def _write_what_is_missing(stream: Any) -> None:
    """Let a letter that the stream's encoding lacks be written as its number, not end the verb."""
    text = getattr(stream, "_out", None)
    if isinstance(text, io.TextIOWrapper):
        text.reconfigure(errors="backslashreplace")


def _cell(value: Cell | str) -> Cell:
    cell = value if isinstance(value, Cell) else Cell(value)
    return Cell(one_line(cell.text), cell.role)


def _plain(value: object) -> str | None:
    return iso(value) if isinstance(value, datetime) else str(value)
