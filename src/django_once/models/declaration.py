"""The declaration: what a task says of itself, as a row, for SQL that enqueues.

Python enqueues from the code it has loaded and reads none of these. A row without a task is what
the backend says for all its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connections, models

from django_once import clock, sql
from django_once.clock import Now
from django_once.models.fields import Moment, Name, RandomUUID
from django_once.sql import declarations, functions
from django_once.sql.repeat import repeated


class Declaration(models.Model):
    """What one task of one backend says of itself."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    task = Name(max_length=255, db_default="")
    backend = Name(max_length=64, db_default="default")
    said = models.TextField(db_default="{}")
    declared_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_declaration"
        constraints = [
            models.UniqueConstraint(fields=["task", "backend"], name="once_declaration_task")
        ]

    def __str__(self) -> str:
        return str(self.task or self.backend)


def declare(database: str, backend: str, said: Sequence[tuple[str, str]]) -> int:
    """Write down what each of these tasks says; count those that have said something else."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: declarations.write(statements, backend, said))


def move_sessions() -> None:
    """Let what SQL enqueues on this thread's connections see the clock as tests have moved it."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql" and connection.connection is not None:
            functions.move(connection, clock.offset().total_seconds())


def has_table(database: str) -> bool:
    """Return whether declarations can be written down there."""
    connection = connections[database]
    with connection.cursor() as cursor:
        return Declaration._meta.db_table in connection.introspection.table_names(cursor)


def renew_functions(database: str) -> bool:
    """Make `once_enqueue` anew unless it is that of this release; say whether it did."""
    return functions.renew(sql.on(database).connection)
