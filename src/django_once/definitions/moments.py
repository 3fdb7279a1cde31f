"""Which instants a rule in time names: wall times through clock changes, and steps of a grid.

Where clocks are changed by less than three hours, Debian's cron is followed. A fixed time of day
is kept: what falls into the gap comes right after it, what comes twice runs the first time. What
has a star in its minute or hour follows the clock: it skips the gap and runs in both passes. A
larger change is a correction, and every rule follows the clock.

Instants are UTC, and each search asks strictly after one. So nothing depends on how often, or
from where, somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django_once.definitions.cron import RAREST_YEARS, Cron

SECOND: Final = timedelta(seconds=1)
CORRECTION: Final = timedelta(hours=3)
HORIZON: Final = timedelta(days=366 * RAREST_YEARS)
GAPS: Final = ("shift", "skip")
FOLDS: Final = ("first", "second", "both")
LAST_YEAR: Final = 9990


@dataclass(frozen=True, slots=True)
class Walls:
    """A cron expression on the walls of a zone; `gap` and `fold` replace the rule of cron."""

    cron: Cron
    zone: ZoneInfo
    gap: str = ""
    fold: str = ""

    def after(self, moment: datetime) -> datetime | None:
        """Return the first instant after this one, or None where five years hold none."""
        found = self._after(_wall(moment, self.zone), moment)
        begin = self._begin_of_second_pass(moment)
        if begin is not None:
            again = self._after(_wall(begin, self.zone) - SECOND, moment)
            found = min(filter(None, (found, again)), default=None)
        return found if found is not None and found <= moment + HORIZON else None

    def _after(self, wall: datetime, moment: datetime) -> datetime | None:
        """Return the first instant after a moment that shows a wall time after this one."""
        next_wall = self.cron.wall_after(wall)
        while next_wall is not None and next_wall.year < LAST_YEAR:
            instants = self._instants(next_wall)
            for instant in instants:
                if instant > moment:
                    return instant
            # A gap may hide thousands of wall times: go on behind it.
            behind = None if instants else self._end_of_gap(next_wall)
            next_wall = self.cron.wall_after(
                next_wall if behind is None else _wall(behind, self.zone) - SECOND
            )
        return None

    def _instants(self, wall: datetime) -> tuple[datetime, ...]:
        """Return when a wall time is due: once, or as the rule says where clocks change."""
        early, late = _both(wall, self.zone)
        if early == late:
            return (early,)
        is_kept = self.cron.is_fixed and abs(late - early) < CORRECTION
        if early > late:
            gap = self.gap or ("shift" if is_kept else "skip")
            return (self._end_of_gap(wall),) if gap == "shift" else ()
        fold = self.fold or ("first" if is_kept else "both")
        return {"first": (early,), "second": (late,), "both": (early, late)}[fold]

    def _end_of_gap(self, wall: datetime) -> datetime:
        early, late = _both(wall, self.zone)
        return _change_between(late, early, self.zone)

    def _begin_of_second_pass(self, moment: datetime) -> datetime | None:
        """Return when the wall times around this moment begin to come again, if they will."""
        early, late = _both(_wall(moment, self.zone), self.zone)
        if not early < late or late <= moment.replace(microsecond=0):
            return None
        return _change_between(moment, late, self.zone)


@dataclass(frozen=True, slots=True)
class Grid:
    """Instants at equal distances from an anchor: late runs move none of the later ones."""

    every: timedelta
    anchor: datetime

    def after(self, moment: datetime) -> datetime | None:
        """Return the first instant after this one."""
        steps = (moment - self.anchor) // self.every + 1
        try:
            return self.anchor + steps * self.every
        except OverflowError:
            return None


def kind_of(moment: datetime, zone: ZoneInfo) -> str:
    """Return what people should know of a moment's wall time: "after a gap", a pass, or nothing."""
    early, late = _both(_wall(moment, zone), zone)
    if early < late:
        return "first pass" if moment < late else "second pass"
    before = (moment - SECOND).astimezone(zone).utcoffset()
    now = moment.astimezone(zone).utcoffset()
    assert before is not None
    assert now is not None
    return "after a gap" if now > before else ""


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _both(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return a wall time read before and after a clock change: equal where there is none."""
    whole = wall.replace(microsecond=0)
    return (
        whole.replace(tzinfo=zone, fold=0).astimezone(UTC),
        whole.replace(tzinfo=zone, fold=1).astimezone(UTC),
    )


def _change_between(before: datetime, behind: datetime, zone: ZoneInfo) -> datetime:
    """Return the first whole second, not before the first of these, at which the offset differs."""
    low = int(before.timestamp())
    high = int(behind.timestamp())
    offset = before.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)
