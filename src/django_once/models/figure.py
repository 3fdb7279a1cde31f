"""The figure: how often something has happened since the tables were made; it only grows."""

from __future__ import annotations

from django.db import models

from django_once import counting, sql
from django_once.models.fields import Name
from django_once.sql import figures
from django_once.sql.repeat import repeated


class Figure(models.Model):
    """A number that only grows, of a task, a queue and an outcome."""

    id = models.BigAutoField(primary_key=True)
    backend = Name(max_length=64, db_default="default")
    name = Name(max_length=32, db_default="")
    task = Name(max_length=255, db_default="")
    queue = Name(max_length=64, db_default="")
    outcome = Name(max_length=32, db_default="")
    value = models.BigIntegerField(db_default=0)

    class Meta:
        app_label = "once"
        db_table = "once_figure"
        constraints = [
            models.UniqueConstraint(
                fields=["backend", "name", "task", "queue", "outcome"], name="once_figure_label"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.task} {self.queue} {self.outcome}: {self.value}"


def write_down(database: str, backend: str) -> int:
    """Add what this process has counted to the figures; return of how many labels."""
    taken = counting.take()
    if not taken:
        return 0
    statements = sql.on(database)
    rows = [(backend, *label, number) for label, number in taken.items()]
    try:
        repeated(statements.connection, lambda: figures.add(statements, rows))
    except BaseException:
        counting.put_back(taken)
        raise
    return len(rows)


def known(database: str, backends: list[str], most: int) -> list[Figure]:
    """Return up to so many figures of these backends."""
    found = Figure.objects.using(database).filter(backend__in=backends)
    return list(found.order_by("backend", "name", "task", "queue", "outcome")[:most])
