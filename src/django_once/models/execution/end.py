"""The ends of records: runs whose jobs have ended, and records that were kept long enough.

A schedule learns from here when a run of it last succeeded. Where old records are deleted, it
remembers up to which moment: below it nobody can say any more what ran.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Max, Q

from django_once import sql
from django_once.clock import Now
from django_once.models.execution.row import TaskExecution
from django_once.models.job import Job
from django_once.models.schedule.row import Schedule
from django_once.sql import schedules

BATCH: Final = 500


def complete_ended(database: str) -> int:
    """Complete up to so many records whose jobs have ended, and tell their schedules; count them.

    Any number of schedulers may do it at once: each record is completed under its guard.
    """
    statements = sql.on(database)
    found = schedules.ended(statements, BATCH)
    by_end: dict[str, list[UUID]] = defaultdict(list)
    succeeded: dict[UUID, datetime] = {}
    for record, schedule, status, finished_at in found:
        by_end[status].append(record)
        if status == Job.SUCCESSFUL and schedule is not None and finished_at is not None:
            succeeded[schedule] = max(finished_at, succeeded.get(schedule, finished_at))
    done = 0
    with sql.transaction_on(database):
        for status, records in by_end.items():
            reason = {Job.SUCCESSFUL: "", Job.FAILED: "failed"}.get(status, "deleted")
            done += _complete(database, records, reason)
        for schedule, finished_at in sorted(succeeded.items()):
            succeed(database, schedule, finished_at)
    return done


def _complete(database: str, records: list[UUID], reason: str) -> int:
    pending = TaskExecution.objects.using(database).filter(
        pk__in=records, status=TaskExecution.PENDING
    )
    done = 0
    for retention in set(pending.values_list("retention", flat=True)):
        alike = pending.filter(retention=retention) if retention else pending.filter(retention=None)
        kept_until = Now() + timedelta(seconds=retention) if retention else None
        done += alike.update(
            status=TaskExecution.COMPLETED, reason=reason, completed_at=Now(), kept_until=kept_until
        )
    return done


def succeed(database: str, schedule: UUID, at: datetime | None = None) -> None:
    """Write down that a run of a schedule succeeded: nothing is expected of it until it fires."""
    Schedule.objects.using(database).filter(pk=schedule).update(
        succeeded_at=at if at is not None else Now(), expected_by=None
    )


def overdue(database: str) -> list[tuple[str, str, datetime]]:
    """Return the schedules of which a run should have succeeded by now: name, task, by when.

    Each is returned once: whoever clears the mark first tells it.
    """
    late = Schedule.objects.using(database).filter(expected_by__lt=Now(), enabled=True)
    told = []
    for row in late.values_list("pk", "name", "task", "expected_by")[:BATCH]:
        schedule, name, task, by = row
        if by is not None and late.filter(pk=schedule, expected_by=by).update(expected_by=None):
            told.append((name, task, by))
    return told


def prune(database: str, most: int = BATCH) -> int:
    """Delete up to so many records that were kept long enough; schedules remember up to where."""
    old = TaskExecution.objects.using(database).filter(kept_until__lt=Now())
    with sql.transaction_on(database):
        ids = list(old.order_by("kept_until").values_list("pk", flat=True)[:most])
        if not ids:
            return 0
        gone = TaskExecution.objects.using(database).filter(pk__in=ids, schedule__isnull=False)
        last = gone.order_by().values("schedule").annotate(last=Max("due_at"), to=Max("through"))
        for row in sorted(last, key=lambda row: row["schedule"]):
            reached = max(filter(None, (row["last"], row["to"])))
            Schedule.objects.using(database).filter(pk=row["schedule"]).filter(
                Q(evidence_from=None) | Q(evidence_from__lt=reached)
            ).update(evidence_from=reached)
        _, counts = old.filter(pk__in=ids).delete()
    return counts.get(TaskExecution._meta.label, 0)
