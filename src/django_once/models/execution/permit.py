"""Permits: a run on a foreign backend may begin once, however often it is delivered.

PENDING until a body's own transaction takes it. Taking does not wait: a permit that another body
holds is as good as gone, except on SQLite, where any writer holds the lock and the second waits.
Nobody dispatches a permit while its lease lasts, and nobody more often than a few times; what is
used up stays PENDING with that reason, as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import F, Q, QuerySet

from django_once import sql
from django_once.clock import Now
from django_once.models.execution.end import succeed
from django_once.models.execution.row import TaskExecution
from django_once.sql.repeat import repeated

EXHAUSTED: Final = "exhausted"
MOST_DISPATCHES: Final = 3
# How long a delivery that the backend took may stay away before it is sent again, and how long
# a permit that no backend takes at all is offered, in seconds.
DELIVERY: Final = 300.0
LONGEST_OFFER: Final = 86_400.0


def take(database: str, permit: UUID) -> bool:
    """Take a permit in the caller's transaction: it is spent if and only if that commits."""
    pending = _pending(database, permit)
    if not _free(pending, 1):
        return False
    return pending.update(status=TaskExecution.COMPLETED, reason="", completed_at=None) == 1


def verify(database: str, permit: UUID) -> bool:
    """Write the end of a taken permit, last in its transaction; False when the take is gone."""
    connection = connections[database]
    if connection.needs_rollback or not connection.in_atomic_block:
        return False
    taken = TaskExecution.objects.using(database).filter(
        pk=permit, status=TaskExecution.COMPLETED, completed_at=None
    )
    row = taken.values_list("retention", "schedule").first()
    if row is None:
        return False
    retention, schedule = row
    if schedule is not None:
        succeed(database, schedule)
    kept_until = None if retention is None else Now() + _span(retention)
    return taken.update(completed_at=Now(), kept_until=kept_until) == 1


def is_pending(database: str, permit: UUID) -> bool:
    """Return whether a permit is still to be had; reads without a lock."""
    return _pending(database, permit).exists()


@dataclass(frozen=True, slots=True)
class Offer:
    """A run that a foreign backend shall make, in the words of its schedule."""

    name: str
    task: str
    queue: str
    priority: int
    backend: str
    args: str
    kwargs: str
    dispatch_count: int


def offered(database: str, record: UUID) -> Offer | None:
    """Return what is to be handed over; None when it was taken, or its schedule was deleted."""
    row = (
        _pending(database, record)
        .filter(schedule__isnull=False)
        .values_list(
            "schedule__name", "schedule__task", "schedule__queue", "schedule__priority",
            "schedule__backend", "schedule__args", "schedule__kwargs", "dispatch_count",
        )
        .first()
    )  # fmt: skip
    return Offer(*row) if row else None


def dispatched(database: str, permit: UUID, result: str, *, is_spent: bool) -> None:
    """Write down that a backend took a delivery; one without a permit ends with that.

    A body that was quicker holds the permit already. Nobody waits for it: its end says more.
    """
    pending = _pending(database, permit)
    changes: dict[str, Any] = {
        "dispatched_at": Now(), "dispatch_count": F("dispatch_count") + 1, "result": result[:64],
        "leased_until": Now() + _span(DELIVERY),
    }  # fmt: skip

    def stamp() -> None:
        with sql.transaction_on(database):
            if not _free(pending, 1):
                return
            if is_spent:
                retention = pending.values_list("retention", flat=True).first()
                changes["status"] = TaskExecution.COMPLETED
                changes["completed_at"] = Now()
                changes["kept_until"] = None if retention is None else Now() + _span(retention)
            pending.update(**changes)

    repeated(connections[database], stamp)


def lease_again(database: str, seconds: float, most: int) -> list[UUID]:
    """Lease up to so many permits whose delivery never happened, or stays away; return them.

    What was delivered often enough, or was offered for too long, is given up. A permit that a
    body holds is passed over: it is about to be spent.
    """
    lapsed = TaskExecution.objects.using(database).filter(
        status=TaskExecution.PENDING, reason="", job=None, leased_until__lt=Now()
    )
    used_up = Q(dispatch_count__gte=MOST_DISPATCHES)
    too_old = Q(created_at__lt=Now() - _span(LONGEST_OFFER))
    with sql.transaction_on(database):
        given_up = _free(lapsed.filter(used_up | too_old), most)
        if given_up:
            lapsed.filter(pk__in=given_up).update(reason=EXHAUSTED)
        leased = _free(lapsed.order_by("leased_until"), most)
        if leased:
            # Race: two schedulers see the same lapsed lease. On SQLite, which locks no rows, the
            # second finds it renewed; elsewhere it has passed over the row.
            again = lapsed.filter(pk__in=leased).update(leased_until=Now() + _span(seconds))
            if again != len(leased):
                return []
    return leased


def _free(rows: QuerySet[TaskExecution], most: int) -> list[UUID]:
    """Lock up to so many of these rows that nobody holds, where there are locks; return them."""
    features = connections[rows.db].features
    if features.has_select_for_update:
        rows = rows.select_for_update(
            skip_locked=features.has_select_for_update_skip_locked,
            nowait=not features.has_select_for_update_skip_locked,
            no_key=features.has_select_for_no_key_update,
        )
    return list(rows.values_list("pk", flat=True)[:most])


def _pending(database: str, permit: UUID) -> QuerySet[TaskExecution]:
    return TaskExecution.objects.using(database).filter(pk=permit, status=TaskExecution.PENDING)


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
