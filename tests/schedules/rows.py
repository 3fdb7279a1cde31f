"""Schedules as rows, the records of their firings, and the jobs that came of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django_once import sql
from django_once.models import Job, Schedule, TaskExecution
from django_once.scheduling.firing import fire_due
from django_once.sql.counts import moment_from_now
from tests.app import tasks

DATABASE = "default"
ADD = tasks.add.module_path


def now(seconds: float = 0.0) -> datetime:
    return moment_from_now(sql.on(DATABASE), seconds)


def to_the_next_minute() -> float:
    """Return the seconds until exactly one whole minute has passed: 61 pass two, now and then."""
    moment = now()
    return 60.5 - moment.second - moment.microsecond / 1e6


def a_schedule(name: str = "s", due: float = 0.0, **said: Any) -> Schedule:
    """Store a schedule that adds each minute, and is due so many seconds from now.

    Its grid begins with that moment, so it does not matter when a test runs.
    """
    moment = now(due)
    known = {
        "task": ADD, "every": 60.0, "starts_at": moment, "args": "[1, 2]", "next_due_at": moment,
        "fires_at": moment, "rule_since": moment - timedelta(days=1), **said,
    }  # fmt: skip
    if "cron" in said:
        known.update(every=None, starts_at=None)
    return Schedule.objects.create(name=name, **known)


def fire_all(database: str = DATABASE) -> int:
    """Fire until nothing is due; return how many runs began or were queued."""
    fired = 0
    while True:
        told = fire_due(database)
        fired += told.fired
        if not told.looked_at or told.unknown:
            return fired


def again(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def records(schedule: Schedule) -> list[tuple[str, str]]:
    """Return status and reason of each record, in the order of the due moments."""
    rows = TaskExecution.objects.filter(schedule=schedule).order_by("due_at")
    return list(rows.values_list("status", "reason"))


def moments(schedule: Schedule) -> list[datetime]:
    rows = TaskExecution.objects.filter(schedule=schedule).order_by("due_at")
    return list(rows.values_list("due_at", flat=True))


def jobs() -> list[Any]:
    return [json.loads(args) for args in Job.objects.order_by("id").values_list("args", flat=True)]
