"""The worker's row and its lease, which covers every job that the worker holds.

One small update renews it for all of them. A lease that lapsed is declared lost once, by
whoever looks first, and can never be renewed again: the statement that renews asks for it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import models

from django_once import __version__
from django_once.clock import Now
from django_once.models.fields import Moment, Name, RandomUUID
from django_once.sql.values import Holder


class Worker(models.Model):
    """One start of one worker process; its id is fresh each time, its name need not be."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    name = Name(max_length=64, db_default="")
    supervisor = models.UUIDField(null=True)
    backend = Name(max_length=64, db_default="default")
    host = models.CharField(max_length=255, db_default="")
    pid = models.IntegerField(db_default=0)
    queues = models.TextField(db_default="[]")
    tasks = models.TextField(db_default="[]")
    concurrency = models.IntegerField(db_default=1)
    version = models.CharField(max_length=32, db_default="")
    started_at = Moment(db_default=Now())
    renewed_at = Moment(null=True)
    leased_until = Moment(db_default=Now())
    lost_at = Moment(null=True)
    stopped_at = Moment(null=True)
    drain_requested_at = Moment(null=True)
    doing = models.TextField(db_default="[]")

    class Meta:
        app_label = "once"
        db_table = "once_worker"
        indexes = [models.Index(fields=["leased_until"], name="once_worker_lease")]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    def takes_from(self, queue: str) -> bool:
        """Return whether it takes from this queue."""
        read = json.loads(self.queues)
        return "*" in read or queue in read


def register(database: str, holder: Holder, lease: timedelta, **known: object) -> None:
    """Store a fresh worker under a lease that begins now."""
    Worker.objects.using(database).create(
        id=holder.id,
        name=holder.name,
        backend=holder.backend,
        started_at=Now(),
        renewed_at=Now(),
        leased_until=Now() + lease,
        **known,
    )


def describe(
    supervisor: UUID, queues: Sequence[str], tasks: Sequence[str], concurrency: int
) -> dict[str, object]:
    """Return what this process's row says of it, beside who it is."""
    return {
        "supervisor": supervisor,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "queues": json.dumps(list(queues)),
        "tasks": json.dumps(list(tasks)),
        "concurrency": concurrency,
        "version": __version__,
    }


def renew(database: str, workers: list[UUID], lease: timedelta) -> int:
    """Lengthen the leases of these workers; return how many were not lost before.

    Race: a sweeper declares the worker lost in the same moment. Both statements name `lost_at`
    and change the one row, so the later of them finds nothing to change.
    """
    still_held = Worker.objects.using(database).filter(
        pk__in=workers, lost_at=None, stopped_at=None
    )
    return still_held.update(leased_until=Now() + lease, renewed_at=Now())


def unrenewed(database: str, workers: list[UUID]) -> set[UUID]:
    """Return those of these workers that can never be renewed again."""
    living = Worker.objects.using(database).filter(pk__in=workers, lost_at=None, stopped_at=None)
    return set(workers) - set(living.values_list("pk", flat=True))


def expire(database: str) -> list[UUID]:
    """Declare every worker lost whose lease has lapsed, once; return those this call declared."""
    lapsed = Worker.objects.using(database).filter(
        lost_at=None, stopped_at=None, leased_until__lt=Now()
    )
    declared = []
    for worker in lapsed.values_list("pk", flat=True):
        if lapsed.filter(pk=worker).update(lost_at=Now()):
            declared.append(worker)
    return declared


def declare_dead(database: str, worker: UUID) -> bool:
    """Declare a worker lost whose death was seen; what it still claims goes back with a sweep."""
    living = Worker.objects.using(database).filter(pk=worker, lost_at=None, stopped_at=None)
    return living.update(lost_at=Now()) == 1


def stop(database: str, worker: UUID) -> bool:
    """Record that a worker ended by itself; what it still held goes back with the next sweep."""
    living = Worker.objects.using(database).filter(pk=worker, lost_at=None, stopped_at=None)
    return living.update(stopped_at=Now()) == 1


def ask_to_drain(database: str, worker: UUID) -> list[str]:
    """Ask a worker and its siblings to take nothing more and to end; return their names.

    They have one supervisor, which ends with them. Its keeper finds the wish within some seconds.
    """
    workers = Worker.objects.using(database)
    living = workers.filter(lost_at=None, stopped_at=None, drain_requested_at=None)
    supervisor = workers.filter(pk=worker).values_list("supervisor", flat=True).first()
    meant = living.filter(supervisor=supervisor) if supervisor else living.filter(pk=worker)
    names = sorted(meant.values_list("name", flat=True))
    return names if meant.update(drain_requested_at=Now()) else []


def is_to_drain(database: str, workers: Sequence[UUID]) -> bool:
    """Return whether somebody asked one of these workers to drain."""
    asked = Worker.objects.using(database).filter(pk__in=workers, drain_requested_at__isnull=False)
    return asked.exists()


def fresh_holder(name: str, backend: str) -> Holder:
    """Return who a starting worker is: a fresh id under a name that people may choose."""
    return Holder(uuid4(), name, backend)


def seen(
    database: str, backends: Sequence[str] | None = None, ended_within: timedelta | None = None
) -> list[Worker]:
    """Return the workers that have not ended, and those that ended within this time.

    The last started first. `state_of` says where each stands.
    """
    workers = Worker.objects.using(database).annotate(now=Now())
    if backends is not None:
        workers = workers.filter(backend__in=backends)
    unended = models.Q(lost_at=None, stopped_at=None)
    if ended_within is not None:
        since = Now() - ended_within
        unended |= models.Q(lost_at__gte=since) | models.Q(stopped_at__gte=since)
    return list(workers.filter(unended).order_by("-started_at", "pk"))


def state_of(worker: Worker, now: datetime) -> str:
    """Return the word for where a worker stands; a lapsed one was not yet declared lost."""
    if worker.stopped_at is not None:
        return "stopped"
    if worker.lost_at is not None:
        return "lost"
    return "alive" if worker.leased_until > now else "lapsed"


def forget(database: str, kept: timedelta, most: int, backends: Sequence[str] | None = None) -> int:
    """Delete up to so many rows of workers that ended longer ago than this; count them.

    A worker whose row is gone can neither claim nor renew, like one that was declared lost.
    """
    before = Now() - kept
    ended = Worker.objects.using(database).filter(
        models.Q(lost_at__lt=before) | models.Q(stopped_at__lt=before)
    )
    if backends is not None:
        ended = ended.filter(backend__in=backends)
    _, counts = ended.filter(pk__in=list(ended.values_list("pk", flat=True)[:most])).delete()
    return counts.get(Worker._meta.label, 0)
