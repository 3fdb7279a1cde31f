"""Runs that wait for the one before them: each begins when no other of its schedule is open."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from django_once import sql
from django_once.clock import Now
from django_once.models.execution.row import TaskExecution
from django_once.sql import schedules

QUEUED = "queued"


def next_in_turn(database: str, most: int) -> list[UUID]:
    """Return up to so many schedules of which a run waits and no other is open."""
    return schedules.next_in_turn(sql.on(database), most)


def waiting_longest(database: str, schedule: UUID) -> tuple[UUID, datetime] | None:
    """Return the record and the due moment of the run that has waited longest for its turn."""
    waiting = TaskExecution.objects.using(database).filter(
        schedule=schedule, status=TaskExecution.PENDING, reason=QUEUED
    )
    return waiting.order_by("due_at").values_list("pk", "due_at").first()


def begin(database: str, record: UUID, job: UUID | None, lease: float | None) -> bool:
    """Let a run begin whose turn it is: as a job, or as a permit that is dispatched."""
    leased_until = None if lease is None else Now() + timedelta(seconds=lease)
    return _waiting(database, record).update(reason="", job=job, leased_until=leased_until) == 1


def refuse(database: str, record: UUID) -> bool:
    """Leave out a run whose turn it is, because what the schedule says is refused."""
    return (
        _waiting(database, record).update(
            status=TaskExecution.SKIPPED, reason="refused", completed_at=Now(),
            kept_until=Now() + timedelta(days=1),
        )
        == 1
    )  # fmt: skip


def revive(
    database: str, schedule: UUID, due_at: datetime, job: UUID | None, lease: float | None
) -> UUID | None:
    """Let a moment that was skipped run after all; return its record, or None without one.

    The record goes on standing for the moments after it that were skipped with it.
    """
    skipped = TaskExecution.objects.using(database).filter(
        schedule=schedule, due_at=due_at, status=TaskExecution.SKIPPED
    )
    record = skipped.values_list("pk", flat=True).first()
    leased_until = None if lease is None else Now() + timedelta(seconds=lease)
    if record is None or not skipped.filter(pk=record).update(
        status=TaskExecution.PENDING, kind=TaskExecution.BACKFILL, reason="", job=job,
        leased_until=leased_until, completed_at=None, kept_until=None,
    ):  # fmt: skip
        return None
    return record


def _waiting(database: str, record: UUID) -> QuerySet[TaskExecution]:
    return TaskExecution.objects.using(database).filter(
        pk=record, status=TaskExecution.PENDING, reason=QUEUED
    )
