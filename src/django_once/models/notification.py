"""The notification: what a channel carries. A stored one is a job, of one listening group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, JSONObject

from django_once import clock, sql
from django_once.models.job.again import retry
from django_once.models.job.row import Job
from django_once.sql.counts import moment_from_now
from django_once.sql.orders import Orders, order_key
from django_once.sql.removals import Removals
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements
from django_once.sql.values import PREDECESSOR, NewJob

BATCH = 500


class StoredNotifications(models.Manager[Any]):
    """Jobs that carry a notification."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Return the jobs of channels only."""
        return super().get_queryset().filter(channel__isnull=False)


class Notification(Job):
    """A job that carries what a channel was told, for one of its groups."""

    objects: ClassVar[StoredNotifications] = StoredNotifications()

    class Meta:
        app_label = "once"
        proxy = True

    def __repr__(self) -> str:
        return (
            f"Notification(channel={self.channel!r}, group={self.group!r}, event={self.event!r}, "
            f"status={self.status!r}, created_at={self.created_at}, db_version={self.db_version!r})"
        )

    @classmethod
    def from_channel(cls, channel: Any) -> models.QuerySet[Any]:
        """Return what is stored of a channel: its class, or its path."""
        name = (
            channel if isinstance(channel, str) else f"{channel.__module__}.{channel.__qualname__}"
        )
        return cls.objects.filter(channel=name)

    @property
    def told(self) -> dict[str, Any]:
        """What was written when the channel was told, as it stands in the row."""
        told = json.loads(self.kwargs)
        return told if isinstance(told, dict) else {}

    @property
    def payload(self) -> dict[str, Any]:
        """What it carries: the fields of a channel, or the row before and after a change."""
        told = self.told
        if "carried" in told:
            carried: dict[str, Any] = json.loads(told["carried"])
            return carried
        rows = {name: told.get(name) for name in ("old", "new")}
        shown = {name: json.loads(row) if row else None for name, row in rows.items()}
        context = told.get("context")
        return {**shown, "context": json.loads(context) if context else {}}

    @property
    def event(self) -> str:
        """What happened: "told", or such as "post_insert"."""
        return str(self.told.get("event", "told"))

    @property
    def group(self) -> str:
        """The group that handles it."""
        return str(self.task).rpartition(":")[2]

    @property
    def created_at(self) -> Any:
        """When it was stored, as Django's settings want it shown."""
        return clock.from_database(self.enqueued_at)

    @property
    def db_version(self) -> str | None:
        """The last migration of the model's app when it was stored."""
        version = self.told.get("schema")
        return None if version is None else str(version)


def store(database: str, jobs: Sequence[NewJob], order: str | None) -> bool:
    """Store one notification for each of its groups in the caller's transaction.

    Those of one order, if they have one, are handled one at a time. Returns whether any can be
    handled now.
    """
    statements = sql.on(database)
    work = partial(_store, statements, jobs, order)
    return repeated(statements.connection, work)


def _store(statements: Statements, jobs: Sequence[NewJob], order: str | None) -> bool:
    with statements.together():
        ready = [_stored(statements, job, order) for job in jobs]
    return any(ready)


def _stored(statements: Statements, job: NewJob, order: str | None) -> bool:
    if order is not None:
        key = order_key(job.task, order)
        generation, must_wait = Orders(statements).draw(job.backend, key)
        blocked_by = PREDECESSOR if must_wait else ""
        job = replace(job, order_key=key, generation=generation, blocked_by=blocked_by)
    return statements.insert(job).is_ready


def admit_next(database: str, backend: str, keys: Sequence[str]) -> tuple[int, set[str]]:
    """Let the next notifications of these orders go; return how many, and the keys to ask again."""
    statements = sql.on(database)

    def admit() -> tuple[int, set[str]]:
        with statements.together():
            return Orders(statements).admit(backend, keys)

    return repeated(statements.connection, admit) if keys else (0, set())


def admit_overlooked(database: str, backend: str) -> int:
    """Let notifications go that wait for nobody; count them."""
    keys = Orders(sql.on(database)).waiting(backend, BATCH)
    return admit_next(database, backend, keys)[0]


def replay_ended(
    database: str, backend: str, channel: str, paths: Sequence[str], within: timedelta | None
) -> int:
    """Make the kept notifications of a channel and these groups ready again; count them."""
    ended = Notification.objects.using(database).filter(
        backend=backend, channel=channel, task__in=paths,
        status__in=(Job.SUCCESSFUL, Job.FAILED),
    )  # fmt: skip
    if within is not None:
        begin = moment_from_now(sql.on(database), -within.total_seconds())
        ended = ended.filter(finished_at__gte=begin)
    # Those that end again meanwhile are not looked at again.
    wanted = list(ended.order_by("enqueued_at", "id").values_list("pk", flat=True))
    return retry(database, wanted)


def is_among(database: str, job: UUID, condition: models.Q) -> bool:
    """Return whether a notification meets a condition."""
    found = Notification.objects.using(database).alias(payload=_payload())
    return bool(found.filter(condition, pk=job).exists())


def _payload() -> JSONObject:
    """Return what a notification carries, for conditions such as payload__context__user=7."""
    told = Cast("kwargs", models.JSONField())
    parts = {
        name: Cast(KeyTextTransform(name, told), models.JSONField())
        for name in ("old", "new", "context", "carried")
    }
    carried = KeyTransform("kwargs", parts.pop("carried"))
    return JSONObject(**parts, kwargs=carried)


def forget_kept(database: str, backend: str, batch: int = BATCH) -> int:
    """Delete notifications that were kept after their success long enough; count them."""
    statements = sql.on(database)

    def forget() -> int:
        with statements.together():
            found = Removals(statements).kept_long_enough(backend, batch)
            return statements.delete(found) if found else 0

    return repeated(statements.connection, forget)


def counts(database: str, backend: str) -> dict[tuple[str, str, str], int]:
    """Return how many notifications stand at each (channel, group's path, status)."""
    rows = (
        Notification.objects.using(database)
        .filter(backend=backend)
        .values_list("channel", "task", "status")
        .annotate(count=models.Count("pk"))
        .order_by()
    )
    return {(channel, path, status): count for channel, path, status, count in rows}
