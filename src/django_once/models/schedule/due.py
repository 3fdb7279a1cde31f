"""Finding and locking what is due: each schedule by one scheduler at a time, whoever comes first.

What another has locked is passed over: it is being fired. A schedule that code declares is fired
only by those who declare it too, and one whose task is unknown here is left to others, so a
removed schedule stops by itself and disables nobody else's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Q

from django_once import sql
from django_once.clock import Now
from django_once.models.schedule.row import Schedule
from django_once.sql.counts import moment_from_now


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule as its locked row stands."""

    id: UUID
    name: str
    task: str
    cron: str
    every: float | None
    timezone: str
    starts_at: datetime | None
    ends_at: datetime | None
    jitter: float
    gap: str
    fold: str
    args: str
    kwargs: str
    queue: str
    priority: int
    backend: str
    overlap: str
    misfire: str
    catch_up: float | None
    expect: float | None
    retention: float | None
    paused_at: datetime | None
    paused_until: datetime | None
    version: int
    rule_since: datetime
    next_due_at: datetime | None
    watermark: datetime | None
    enabled: bool


COLUMNS = tuple(field.name for field in fields(Due))


def as_due(schedule: Schedule) -> Due:
    """Return a row that was read as what a scheduler would read."""
    return Due(*[getattr(schedule, name) for name in COLUMNS])


def lock_due(
    database: str, most: int, *, declared: Collection[str], unknown: Collection[str] = ()
) -> tuple[datetime, list[Due]]:
    """Lock up to so many due schedules, the longest due first; return them, and now.

    The caller holds a transaction.
    """
    due = _locking(database).filter(_by_whom(declared), enabled=True, fires_at__lte=Now())
    if unknown:
        due = due.exclude(task__in=unknown)
    found = [Due(*row) for row in due.order_by("fires_at").values_list(*COLUMNS)[:most]]
    # Read after the rows are locked: whoever held them may have taken a while.
    return moment_from_now(sql.on(database)), found


def lock(database: str, ids: Sequence[UUID], *, waits: bool = True) -> list[Due]:
    """Lock these schedules, in order of their ids; without waiting, those that nobody has."""
    rows = _locking(database, skips=not waits).filter(pk__in=ids).order_by("pk")
    return [Due(*row) for row in rows.values_list(*COLUMNS)]


def seconds_to_next(database: str, declared: Collection[str]) -> float | None:
    """Return how long until somebody must look at a schedule again, or None for never."""
    waiting = Schedule.objects.using(database).filter(
        _by_whom(declared), enabled=True, fires_at__isnull=False
    )
    row = waiting.order_by("fires_at").values_list("fires_at", Now()).first()
    if row is None:
        return None
    fires_at, now = row
    statements = sql.on(database)
    return (statements.moment(fires_at) - statements.moment(now)).total_seconds()


def _by_whom(declared: Collection[str]) -> Q:
    return Q(source=Schedule.DATABASE) | Q(name__in=declared)


def _locking(database: str, *, skips: bool = True) -> Any:
    features = connections[database].features
    return Schedule.objects.using(database).select_for_update(
        skip_locked=skips and features.has_select_for_update_skip_locked,
        no_key=features.has_select_for_no_key_update,
    )
