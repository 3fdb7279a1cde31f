"""Looking at records: which moments have one, which runs are open, what fell due for a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from django_once import sql
from django_once.models.execution.row import TaskExecution
from django_once.sql import schedules


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a record says of its moment."""

    due_at: datetime
    through: datetime | None
    kind: str
    status: str
    reason: str
    job: UUID | None


def records_since(database: str, schedule: UUID, since: datetime) -> list[Recorded]:
    """Return the records of a schedule that say anything of what was due since then."""
    of_it = TaskExecution.objects.using(database).filter(schedule=schedule)
    rows = of_it.filter(Q(due_at__gte=since) | Q(through__gte=since))
    names = [one.name for one in fields(Recorded)]
    return [Recorded(*row) for row in rows.order_by("due_at").values_list(*names)]


def recorded(
    database: str, moments: Mapping[UUID, Iterable[datetime]]
) -> set[tuple[UUID, datetime]]:
    """Return which of these due moments have a record already."""
    found: set[tuple[UUID, datetime]] = set()
    for schedule, due in moments.items():
        rows = TaskExecution.objects.using(database).filter(schedule=schedule, due_at__in=due)
        found.update((schedule, due_at) for due_at in rows.values_list("due_at", flat=True))
    return found


def has_run(database: str, schedule: UUID, moments: Sequence[datetime]) -> set[datetime]:
    """Return those of these moments that ran, or are about to: all that were not skipped."""
    ran: set[datetime] = set()
    for start in range(0, len(moments), 500):
        rows = TaskExecution.objects.using(database).filter(
            schedule=schedule, due_at__in=moments[start : start + 500]
        )
        ran.update(rows.exclude(status=TaskExecution.SKIPPED).values_list("due_at", flat=True))
    return ran


def has_open_runs(database: str) -> bool:
    """Return whether any run of any schedule has not ended."""
    return TaskExecution.objects.using(database).filter(status=TaskExecution.PENDING).exists()


def open_runs(database: str, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return how many runs of these schedules have not ended."""
    return schedules.open_runs(sql.on(database), ids)


def due_moment_of(database: str, job: UUID) -> datetime | None:
    """Return the due moment that a job was enqueued for, or None when no schedule did."""
    rows = TaskExecution.objects.using(database).filter(job=job).order_by("created_at")
    return rows.values_list("due_at", flat=True).first()
