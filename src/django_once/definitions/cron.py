"""Cron expressions: refused at once when they cannot be meant, else the wall times they name.

CronSim matches the fields. What it has no words for is rewritten before it reads them: aliases
(`@daily`), `H` (a stable place of its own for each name, so that not everything starts at :00),
ranges over the end (`FRI-MON`, `22-2`) and `L5`. A sixth field stands in front and means seconds.

Nothing here knows of time zones: a wall time is what a clock on the wall shows, and `moments`
says which instants show it.
"""

from __future__ import annotations

import hashlib
import re
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from django_once.errors import InvalidOption, shortened

ALIASES: Final = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}  # fmt: skip
LONGEST: Final = 255
LONGEST_FIELD: Final = 180
RAREST_YEARS: Final = 5
# Where a first search begins; any five years hold every day that comes once in four.
SOME_DAY: Final = datetime(2021, 3, 1)  # noqa: DTZ001 - a wall time has no zone

MONTHS: Final = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
HASHED: Final = re.compile(r"H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,4}))?")
RANGE: Final = re.compile(r"([A-Z]{3}|\d{1,4})-([A-Z]{3}|\d{1,4})(?:/(\d{1,4}))?")
LAST_DAY: Final = re.compile(r"L([0-7]|[A-Z]{3})")


@dataclass(frozen=True, slots=True)
class Place:
    """One field of an expression: its name, what it may hold, and what `H` chooses from."""

    name: str
    least: int
    most: int
    hashed_to: int
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int | None:
        """Return the number that a word or digits stand for, or None for neither."""
        if text in self.words:
            return self.words.index(text) + self.least
        return int(text) if text.isdecimal() else None


PLACES: Final = (
    Place("second", 0, 59, 59), Place("minute", 0, 59, 59), Place("hour", 0, 23, 23),
    # Every month has a day 28.
    Place("day-of-month", 1, 31, 28), Place("month", 1, 12, 12, tuple(MONTHS)),
    Place("day-of-week", 0, 6, 6, tuple(DAYS)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that was read: which wall times it names."""

    text: str
    expression: str
    _parsed: CronSim = field(repr=False, compare=False)

    @property
    def is_fixed(self) -> bool:
        """Whether it names times of day, as cron means it: no star in seconds, minute or hour.

        Such a time must not be lost, nor come twice, when clocks are changed.
        """
        return not any(part.startswith("*") for part in self.expression.split()[:-3])

    @property
    def has_seconds(self) -> bool:
        """Whether it says at which second."""
        return len(self.expression.split()) == 6

    def wall_after(self, wall: datetime) -> datetime | None:
        """Return the first wall time after this one, or None where fifty years hold none."""
        walker = copy(self._parsed)
        walker.dt = wall.replace(microsecond=0)
        return next(walker, None)

    def in_words(self) -> str:
        """Return what it means in English."""
        return Expression(self._parsed.parts).explain()


@lru_cache(maxsize=4096)
def read(text: str, name: str = "") -> Cron:
    """Return the expression, or refuse it; `name` chooses the places that `H` stands for."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidOption(
            f"cron must be an expression of at most {LONGEST} characters, got {shortened(text)}."
        )
    fields = _fields(text)
    places = PLACES[-len(fields) :]
    parts = [_plain(part, place, text, name) for part, place in zip(fields, places, strict=True)]
    expression = " ".join(parts)
    try:
        parsed = CronSim(expression, SOME_DAY)
    except (CronSimError, ValueError, RecursionError) as error:
        raise _refused(text, f"{error} in it cannot be meant, or no date is like that") from None
    found = Cron(text, expression, parsed)
    first = found.wall_after(SOME_DAY)
    if first is None or first.year > SOME_DAY.year + RAREST_YEARS:
        raise _refused(text, f"no date within {RAREST_YEARS} years is like that")
    return found


def _fields(text: str) -> list[str]:
    stripped = text.strip()
    if stripped.lower() == "@reboot":
        raise _refused(text, "a start is no moment in time")
    if stripped.startswith("@"):
        if stripped.lower() not in ALIASES:
            raise _refused(text, f"there are {', '.join(ALIASES)}")
        return ALIASES[stripped.lower()].split()
    if not stripped.isascii() or not stripped.replace("\t", " ").isprintable():
        raise _refused(text, "it has characters that no field has")
    fields = stripped.upper().split()
    if len(fields) not in (5, 6):
        raise _refused(
            text,
            f"it has {len(fields)} fields; write minute, hour, day-of-month, month and "
            "day-of-week, and a second before them if you must",
        )
    return fields


def _plain(part: str, place: Place, text: str, name: str) -> str:
    """Return a field in words that CronSim knows."""
    if len(part) > LONGEST_FIELD:
        raise _refused(text, f"its {place.name} is longer than {LONGEST_FIELD} characters")
    return ",".join(_term(term, place, text, name) for term in part.split(","))


def _term(term: str, place: Place, text: str, name: str) -> str:
    hashed = HASHED.fullmatch(term)
    if hashed:
        return _spread(hashed, place, text, name)
    last = LAST_DAY.fullmatch(term)
    if last and place.name == "day-of-week":
        return f"{last[1]}L"
    across = RANGE.fullmatch(term)
    if across:
        first, final = place.number(across[1]), place.number(across[2])
        if first is not None and final is not None and first > final:
            return _over_the_end(first, final, int(across[3] or 1), place, text)
    if "W" in term.replace("WED", "") and term != "LW":
        raise _refused(text, f"{term} is unknown; LW is the last weekday of a month")
    if "?" in term:
        raise _refused(text, "? is unknown; write * for any")
    return term


def _over_the_end(first: int, final: int, step: int, place: Place, text: str) -> str:
    """Return a range that goes on at the beginning as the list of its values."""
    if first > place.most or final < place.least or not step:
        raise _refused(text, f"Bad {place.name}")
    count = place.most - place.least + 1
    length = (final - first) % count
    values = [(first - place.least + n) % count + place.least for n in range(0, length + 1, step)]
    return ",".join(map(str, sorted(values)))


def _spread(hashed: re.Match[str], place: Place, text: str, name: str) -> str:
    """Return the place that a name has in a field, always the same."""
    least = int(hashed[1]) if hashed[1] else place.least
    most = int(hashed[2]) if hashed[2] else place.hashed_to
    if not place.least <= least <= most <= place.most:
        raise _refused(text, f"H({least}-{most}) does not fit into its {place.name}")
    drawn = int.from_bytes(hashlib.sha256(f"{name}:{place.name}".encode()).digest()[:8], "big")
    if hashed[3] is None:
        return str(least + drawn % (most - least + 1))
    step = int(hashed[3])
    if not 1 <= step <= most - least + 1:
        raise _refused(text, f"/{step} does not fit into its {place.name}")
    first = least + drawn % step
    return f"{first}-{most}/{step}" if first < most else str(first)


def _refused(text: str, why: str) -> InvalidOption:
    return InvalidOption(f"cron {shortened(text)} names nothing: {why}.")
