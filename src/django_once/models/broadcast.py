"""The broadcast: what was too long to be told at once, or waits to be passed on. Nobody keeps it.

On PostgreSQL a row holds what does not fit into a NOTIFY, until every listener has had the time to
read it. Elsewhere it is what a trigger told, until a listening process passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db import models

from django_once import sql
from django_once.clock import Now
from django_once.models.fields import Moment, Name, RandomUUID
from django_once.sql import broadcasts
from django_once.sql.repeat import repeated

# Whoever has not read it by then was stopped, or will never come.
KEPT: Final = timedelta(hours=1)
MOST_AT_ONCE: Final = 200


class Broadcast(models.Model):
    """What a line is told, beside the line."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    line = Name(max_length=63, db_default="")
    told = models.TextField(db_default="{}")
    told_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_broadcast"

    def __str__(self) -> str:
        return str(self.pk)


def tell(database: str, line: str, told: str) -> None:
    """Tell whoever listens on a line when the caller's transaction commits (PostgreSQL)."""
    broadcasts.tell(sql.on(database), line, told)


def kept(database: str, id: UUID) -> str | None:
    """Return what was too long to be told, unless it was deleted meanwhile."""
    return broadcasts.kept(sql.on(database), id)


def taken_of(database: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    """Take what triggers have told these lines, to pass it on: each is taken by one."""
    statements = sql.on(database)
    return [
        (line, told)
        for id, line, told in broadcasts.waiting(statements, lines, MOST_AT_ONCE)
        if repeated(statements.connection, partial(broadcasts.taken, statements, id))
    ]


def forget_told(database: str) -> int:
    """Delete what everybody has had the time to read; count it."""
    statements = sql.on(database)
    return repeated(
        statements.connection, lambda: broadcasts.forget(statements, KEPT.total_seconds())
    )


def end_deaf(database: str) -> int:
    """End the sessions of listeners that were stopped and would fill the server; count them."""
    statements = sql.on(database)
    return broadcasts.end_deaf(statements) if statements.vendor == "postgresql" else 0
