"""Pruning: ended jobs are deleted when they are older than they are kept; nothing else ever is.

One call is one short transaction. Rows that somebody has locked are left for the next time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max, Q
from django.db.models.deletion import Collector

from django_once import sql
from django_once.clock import Now
from django_once.models.job.row import Job
from django_once.sql.counts import moment_from_now
from django_once.sql.endings import ENDED
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements
from django_once.sql.steps import Steps

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Pruned:
    """One batch: how many jobs went, and up to which end nothing is left to look at."""

    count: int
    reached: datetime | None


def prune(
    database: str,
    backend: str | None,
    older_than: Mapping[str, timedelta],
    batch: int = BATCH,
    *,
    queue: str = "",
) -> int:
    """Delete up to so many jobs that ended longer ago than their status is kept; count them.

    Of one backend, or of all; of one queue, or of all. A status that is not named is kept for
    ever. Call it again until it returns less than a batch.
    """
    return prune_from(database, backend, older_than, batch, queue=queue).count


def prune_from(
    database: str,
    backend: str | None,
    older_than: Mapping[str, timedelta],
    batch: int = BATCH,
    *,
    queue: str = "",
    since: datetime | None = None,
) -> Pruned:
    """Prune one batch of what ended at or after `since`, and tell from where to go on.

    Whoever hands that back walks each kept row once, and not once for each batch.
    """
    if not older_than:
        return Pruned(0, since)
    kept = _seconds(older_than)
    statements = sql.on(database)

    def delete() -> Pruned:
        with statements.planned():
            reached: datetime | None = _deadline(database, older_than)
            found = statements.ended(kept, backend, batch, queue=queue, since=since)
            old = Job.objects.using(database).filter(pk__in=found, status__in=ENDED)
            if len(found) == batch:
                reached = old.aggregate(last=Max("finished_at"))["last"] or since
            deleted = _delete(statements, found) if found else 0
            if deleted:
                Steps(statements).forget(found)
        return Pruned(deleted, reached)

    return repeated(statements.connection, delete)


def count_prunable(
    database: str, backend: str | None, older_than: Mapping[str, timedelta], *, queue: str = ""
) -> int:
    """Return how many jobs ended longer ago than their status is kept."""
    _seconds(older_than)
    old = Q(pk__in=[])
    for status, age in older_than.items():
        old |= Q(status=status, finished_at__lt=Now() - age)
    old &= ~Q(status=Job.SUCCESSFUL, kept_for__isnull=False)
    jobs = Job.objects.using(database).filter(old)
    if backend is not None:
        jobs = jobs.filter(backend=backend)
    if queue:
        jobs = jobs.filter(queue=queue)
    return jobs.count()


def _delete(statements: Statements, found: list[UUID]) -> int:
    """Delete these rows, and by the ORM what others have hung on them, if there is any."""
    database = statements.connection.alias
    old = Job.objects.using(database).filter(pk__in=found, status__in=ENDED)
    if Collector(using=database, origin=old).can_fast_delete(old):
        return statements.delete(found)
    _, counts = old.delete()
    return counts.get(Job._meta.label, 0)


def _deadline(database: str, older_than: Mapping[str, timedelta]) -> datetime:
    """Return the moment before which everything is old enough, whatever its status."""
    longest = max(age.total_seconds() for age in older_than.values())
    return moment_from_now(sql.on(database), -longest)


def _seconds(older_than: Mapping[str, timedelta]) -> dict[str, float]:
    if not set(older_than) <= set(ENDED):
        raise ValueError(f"Only ended jobs can be pruned ({', '.join(ENDED)}), got {older_than!r}.")
    return {status: age.total_seconds() for status, age in older_than.items()}
