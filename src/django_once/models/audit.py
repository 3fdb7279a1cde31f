"""The audit log: what people did to jobs, queues, schedules, workers, locks, and what came of it.

An entry is written before the act and ended after it. So an act whose process died half way stands
there without an end, and nobody can act without leaving a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, models

from django_once.clock import Now
from django_once.models.fields import Moment, PartialIndex

LONGEST: Final = 255
LONGEST_ABOUT: Final = 2_000


class AuditEntry(models.Model):
    """One act of a person: who did what to what, by which door, and what became of it."""

    DASHBOARD, ADMIN, SHELL = "dashboard", "admin", "shell"

    id = models.BigAutoField(primary_key=True)
    at = Moment(db_default=Now())
    actor = models.CharField(max_length=255, db_default="")
    door = models.CharField(max_length=16, db_default=DASHBOARD)
    # What was done: retry, cancel, pause, resume, run, backfill, drain, release, prune, …
    act = models.CharField(max_length=32, db_default="")
    # To what: a kind of thing, and which: an id, a name, or a filter.
    kind = models.CharField(max_length=16, db_default="job")
    about = models.TextField(db_default="")
    job = models.UUIDField(null=True)
    backend = models.CharField(max_length=64, db_default="")
    reason = models.CharField(max_length=255, db_default="")
    done = models.BigIntegerField(db_default=0)
    outcome = models.TextField(db_default="")
    ended_at = Moment(null=True)

    class Meta:
        app_label = "once"
        db_table = "once_audit"
        verbose_name_plural = "audit entries"
        indexes = [
            PartialIndex(
                name="once_audit_job",
                fields=["job"],
                where="job IS NOT NULL",
                whole=["job"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.act} {self.kind} {self.about}"


@dataclass(slots=True)
class Telling:
    """What becomes of an act, as it goes on."""

    id: int
    done: int = 0
    outcome: str = ""

    def tell(self, outcome: str, done: int = 1) -> None:
        """Say what came of it, and of how many things."""
        self.outcome, self.done = outcome, done


def begin(
    database: str, *, actor: str, door: str, act: str, kind: str, about: str,
    job: UUID | None = None, backend: str = "", reason: str = "",
) -> int:  # fmt: skip
    """Write down that somebody is about to do something; return the entry's id."""
    entry = AuditEntry.objects.using(database).create(
        at=Now(), actor=actor[:LONGEST], door=door, act=act, kind=kind,
        about=about[:LONGEST_ABOUT], job=job, backend=backend, reason=reason[:LONGEST],
    )  # fmt: skip
    return int(entry.pk)


def end(database: str, entry: int, outcome: str, done: int = 0) -> bool:
    """Write down what came of an act; False when that was told before."""
    unended = AuditEntry.objects.using(database).filter(pk=entry, ended_at=None)
    return unended.update(outcome=outcome, done=done, ended_at=Now()) == 1


def advance(database: str, entry: int, done: int) -> None:
    """Write down how far an act has come that takes long."""
    AuditEntry.objects.using(database).filter(pk=entry, ended_at=None).update(done=done)


@contextmanager
def acted(
    database: str, *, actor: str, door: str, act: str, kind: str, about: str,
    job: UUID | None = None, backend: str = "", reason: str = "",
) -> Iterator[Telling]:  # fmt: skip
    """Keep the act of this block in the log, with what it tells; one that raises has failed."""
    telling = Telling(
        begin(
            database, actor=actor, door=door, act=act, kind=kind, about=about, job=job,
            backend=backend, reason=reason,
        )
    )  # fmt: skip
    try:
        yield telling
    except BaseException as raised:
        # A transaction that is broken takes the entry with it, and the act as well.
        with suppress(DatabaseError, InterfaceError):
            end(database, telling.id, f"failed: {raised}", telling.done)
        raise
    end(database, telling.id, telling.outcome, telling.done)


def entries(
    database: str, most: int, *, before: int | None = None, **like: Any
) -> list[AuditEntry]:
    """Return so many acts, the last first, of those that are alike in these columns."""
    found = AuditEntry.objects.using(database).filter(**like)
    if before is not None:
        found = found.filter(pk__lt=before)
    return list(found.order_by("-pk")[:most])
