"""What a body has behind it, beside its job: steps it will not take again, and how far it is.

Both stand in rows of their own, since the job's row may be locked while its body runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import models

from django_once import sql
from django_once.clock import Now
from django_once.models.fields import Moment, Name
from django_once.sql.repeat import repeated
from django_once.sql.steps import Steps
from django_once.sql.values import Told


class Step(models.Model):
    """One step of a job that was taken: its name, and its result as JSON text."""

    job = models.UUIDField()
    name = Name(max_length=160, db_default="")
    value = models.TextField(db_default="null")
    taken_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_step"
        constraints = [models.UniqueConstraint(fields=["job", "name"], name="once_step_name")]

    def __str__(self) -> str:
        return str(self.name)


class Progress(models.Model):
    """How far a job is, as its body last told."""

    job = models.UUIDField(primary_key=True)
    done = models.FloatField(db_default=0.0)
    total = models.FloatField(null=True)
    message = models.CharField(max_length=255, db_default="")
    updated_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_progress"
        verbose_name_plural = "progress"

    def __str__(self) -> str:
        return f"{self.done:g} of {self.total:g}" if self.total is not None else f"{self.done:g}"


def steps_of(database: str, job: UUID) -> dict[str, str]:
    """Return the steps that a job has taken, each with its result as JSON text."""
    taken = Step.objects.using(database).filter(job=job)
    return dict(taken.values_list("name", "value"))


def take(database: str, job: UUID, claim: UUID, name: str, value: str) -> bool:
    """Put a step on record as part of the caller's transaction; False when the job is another's."""
    statements = sql.on(database)
    steps = Steps(statements)
    return repeated(statements.connection, lambda: steps.take(job, claim, name, value))


def tell_progress(database: str, told: Sequence[Told]) -> int:
    """Write down how far these attempts are; count those that still hold their job."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: Steps(statements).tell(told))


def progress_of(database: str, job: UUID) -> Progress | None:
    """Return how far a job is, or None when its body never told."""
    return Progress.objects.using(database).filter(pk=job).first()
