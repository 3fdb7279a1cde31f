"""A backfill from the dashboard: what it would run is shown first, and run when that is agreed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.errors import InvalidOption
from django_once.management.moments import since_when
from django_once.models import Schedule
from django_once.scheduling import running
from django_once.scheduling.running import Backfill

MOST_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """The period of a backfill, and how many runs may begin in a minute."""

    begin: datetime
    end: datetime
    per_minute: float | None
    words: Mapping[str, str]


def asked(visit: Visit, schedule: Schedule, words: Mapping[str, str]) -> Asked:
    """Return what a form asks for, or refuse it."""
    if not words["begin"]:
        raise InvalidOption("Say from when on: how long ago, as in 24h, or a moment.")
    begin = since_when(words["begin"], visit.now)
    latest = min(visit.now, schedule.next_due_at or visit.now)
    end = since_when(words["end"], visit.now) if words["end"] else latest
    rate = words["rate"]
    try:
        per_minute = float(rate) if rate else None
    except ValueError:
        raise InvalidOption(f"The rate is a number of runs in a minute, got {rate!r}.") from None
    return Asked(begin, end, per_minute, words)


def show(visit: Visit, schedule: Schedule, asked: Asked) -> Shown:
    """Show which moments would run."""
    planned = running.backfill(
        visit.database, schedule.pk, asked.begin, asked.end, dry_run=True,
        per_minute=asked.per_minute,
    )  # fmt: skip
    context = {
        "schedule": schedule, "asked": asked, "planned": planned,
        "moments": planned.moments[:MOST_SHOWN],
        "left_out": max(0, len(planned.moments) - MOST_SHOWN),
        # The same period, although time goes on until somebody agrees.
        "fixed": {"begin": asked.begin.isoformat(), "end": asked.end.isoformat(),
                  "rate": asked.words["rate"]},
    }  # fmt: skip
    return Shown("schedules", f"Backfill {schedule.name}", "once/backfill.html", context,
                 is_live=False)  # fmt: skip


def run(visit: Visit, schedule: Schedule, asked: Asked) -> Backfill:
    """Begin the runs of these moments; those that somebody began meanwhile are left alone."""
    return running.backfill(
        visit.database, schedule.pk, asked.begin, asked.end, per_minute=asked.per_minute
    )
