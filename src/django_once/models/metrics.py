"""What is measured of the work: a handful of short questions, whatever the number of jobs.

What waits is counted up to a bound, how long jobs waited and ran is read of the last thousand that
ended within a minute, and what only grows stands in figures and in the schedules' rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, InterfaceError, connections

from django_once.models.figure import Figure, known
from django_once.models.job import look
from django_once.models.job.look import Count, Sample
from django_once.models.lock import HELD
from django_once.models.lock import known as known_locks
from django_once.models.lock import state_of as state_of_lock
from django_once.models.schedule.row import Schedule
from django_once.models.worker import Worker, seen
from django_once.sql import health

WITHIN: Final = timedelta(minutes=1)
MOST_FIGURES: Final = 5_000
MOST_SCHEDULES: Final = 1_000
MOST_LOCKS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one database, at one moment."""

    database: str
    now: datetime
    counts: dict[str, list[Count]]
    samples: list[Sample]
    workers: list[Worker]
    figures: list[Figure]
    schedules: list[Schedule]
    locks: dict[str, int]
    horizon: float | None


def measure(database: str, backends: Sequence[str]) -> Measured:
    """Return what is measured of these backends, which are in one database."""
    now = look.now(database)
    schedules = Schedule.objects.using(database).filter(backend__in=backends).order_by("name")
    states: dict[str, int] = {}
    for lock in known_locks(database, only_held=True)[:MOST_LOCKS]:
        state = state_of_lock(lock, now)
        states[state] = states.get(state, 0) + 1
    return Measured(
        database,
        now,
        {backend: look.counts(database, [backend]) for backend in backends},
        look.samples(database, backends, WITHIN),
        seen(database, list(backends)),
        known(database, list(backends), MOST_FIGURES),
        list(schedules.only("name", "backend", "fired", "skipped", "fires_at", "enabled",
                            "succeeded_at", "paused_at")[:MOST_SCHEDULES]),
        {"held": states.get(HELD, 0), "lapsed": sum(states.values()) - states.get(HELD, 0)},
        _horizon(database),
    )  # fmt: skip


def _horizon(database: str) -> float | None:
    """Return the age of the oldest transaction, where the server tells it to this user."""
    connection = connections[database]
    if connection.in_atomic_block:
        return None
    try:
        return health.horizon_seconds(connection)
    except (DatabaseError, InterfaceError):
        return None
