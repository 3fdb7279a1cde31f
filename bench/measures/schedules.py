"""Schedules that are all due in one second, fired by three schedulers at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from bench import table
from bench.figures import Figure, Gate
from bench.others import Other, fire_from
from bench.project.work.tasks import nothing
from bench.session import Session
from django_once import sql
from django_once.models import Job, Schedule, TaskExecution
from django_once.sql.counts import moment_from_now

SCHEDULERS: Final = 3
SCHEDULES: Final = 10_000
AHEAD: Final = 4.0


def due_at_once(session: Session) -> Iterator[Figure]:
    """Yield how long three schedulers take for ten thousand schedules, each fired once."""
    table.empty()
    store(SCHEDULES)
    crew = [Other(fire_from) for _ in range(SCHEDULERS)]
    try:
        for one in crew:
            one.answer()
        begins = time.monotonic() + AHEAD
        moment = moment_from_now(sql.on("default"), AHEAD)
        Schedule.objects.update(next_due_at=moment, fires_at=moment, starts_at=moment)
        for one in crew:
            one.tell(begins)
        ended = [one.answer() for one in crew]
    finally:
        for one in crew:
            one.end()
    records = TaskExecution.objects.count()
    jobs = Job.objects.values("args").distinct().count()
    assert records == jobs == Job.objects.count() == SCHEDULES, (records, jobs)
    yield Figure(
        "schedules", f"{SCHEDULES:,} due at once, {SCHEDULERS} schedulers", max(ended) - begins,
        "s", gates=(Gate("value", most=2.0),), note="from the due moment to the last commit",
    )  # fmt: skip
    table.empty()


def store(count: int) -> None:
    """Store so many schedules of one task, which are not yet due."""
    TaskExecution.objects.all().delete()
    Schedule.objects.all().delete()
    far = moment_from_now(sql.on("default"), 86_400.0)
    Schedule.objects.bulk_create(
        [
            Schedule(
                name=f"s{n}", task=nothing.module_path, args=f"[{n}]", every=3600.0,
                starts_at=far, next_due_at=far, fires_at=far, rule_since=far - timedelta(days=2),
            )
            for n in range(count)
        ],
        batch_size=2_000,
    )  # fmt: skip
