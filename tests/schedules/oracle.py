"""Debian's cron, played minute by minute: what a rule in time must do, without a line of ours.

It looks at a wall clock once a minute, as cron does, and follows the manual: "Clock changes of
less than three hours are handled specially. If time has moved forwards, those jobs that would have
run in the interval that was skipped will be run immediately. If time has moved backwards by less
than three hours, those jobs that fall into the repeated time will not be re-run. Only jobs that
run at a particular time (not specified as @hourly, nor with '*' in the hour or minute specifier)
are affected. Jobs which are specified with wildcards are run based on the new time immediately."
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
# So many are kept: every expression looks at the same days around a change.
FEW = timedelta(days=7)
BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
NAMES = [{}, {}, {}] + [
    {name: n for n, name in enumerate(words.split(), first)}
    for words, first in (
        ("jan feb mar apr may jun jul aug sep oct nov dec", 1),
        ("sun mon tue wed thu fri sat", 0),
    )
]


def firings(expression: str, zone_name: str, begin: datetime, end: datetime) -> list[datetime]:
    """Return every minute in [begin, end) at which cron would start the job."""
    sets, stars = parsed(expression)
    is_wild = stars[0] or stars[1]
    found = []
    seen = begin.astimezone(ZoneInfo(zone_name)).replace(tzinfo=None) - MINUTE
    for instant, wall in walls(zone_name, begin, end):
        step = wall - seen
        if is_wild or step == MINUTE:
            due = matches(wall, sets, stars)
        elif step > MINUTE:
            # The clock was set forward: what lay in between runs now, as one start.
            due = any(matches(seen + n * MINUTE, sets, stars) for n in range(1, step // MINUTE + 1))
        else:
            # It was set back, or has not yet come to where it was: nothing is run again.
            due = False
        if due:
            found.append(instant)
        seen = wall if is_wild else max(seen, wall)
    return found


def walls(zone_name: str, begin: datetime, end: datetime) -> Iterable[tuple[datetime, datetime]]:
    """Return each minute, and what a clock on the wall shows then."""
    return _few(zone_name, begin, end) if end - begin < FEW else _shown(zone_name, begin, end)


def _shown(zone_name: str, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    zone, instant = ZoneInfo(zone_name), begin
    while instant < end:
        yield instant, instant.astimezone(zone).replace(tzinfo=None)
        instant += MINUTE


@lru_cache(maxsize=32)
def _few(zone_name: str, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    return list(_shown(zone_name, begin, end))


def parsed(expression: str) -> tuple[list[set[int]], list[bool]]:
    parts = expression.lower().split()
    sets = [
        set().union(*(values(term, *BOUNDS[n], NAMES[n]) for term in part.split(",")))
        for n, part in enumerate(parts)
    ]
    if 7 in sets[4]:
        sets[4].add(0)
    return sets, [part.startswith("*") for part in parts]


def values(term: str, least: int, most: int, names: dict[str, int]) -> set[int]:
    body, _, step = term.partition("/")
    if body == "*":
        first, last = least, most
    else:
        ends = [names.get(end) if end in names else int(end) for end in body.split("-")]
        first, last = ends[0], ends[-1]
        if step and len(ends) == 1:
            last = most
    return set(range(first, last + 1, int(step or 1)))


def matches(wall: datetime, sets: list[set[int]], stars: list[bool]) -> bool:
    if wall.minute not in sets[0] or wall.hour not in sets[1] or wall.month not in sets[3]:
        return False
    by_day, by_weekday = wall.day in sets[2], wall.isoweekday() % 7 in sets[4]
    return by_day and by_weekday if stars[2] or stars[4] else by_day or by_weekday


@lru_cache
def changes(zone_name: str, begin: datetime, end: datetime) -> list[datetime]:
    """Return the hours in which a zone changes its offset."""
    zone, found, instant = ZoneInfo(zone_name), [], begin
    offset = instant.astimezone(zone).utcoffset()
    while instant < end:
        instant += timedelta(hours=1)
        now = instant.astimezone(zone).utcoffset()
        if now != offset:
            found.append(instant)
        offset = now
    return found


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)
