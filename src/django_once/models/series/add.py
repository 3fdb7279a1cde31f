"""Naming the next job of a key by somebody's will: add, replace, stop.

Each takes the series' row first, so of two that come at once the second sees what the first has
done. What these do is part of the caller's transaction; others who want the same key wait for its
end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import partial
from typing import Final, Literal, TypeVar
from uuid import UUID

from django_once import payload, sql
from django_once.errors import Cancelled, Superseded
from django_once.models.job.row import Job
from django_once.models.series.row import Series
from django_once.sql.repeat import repeated
from django_once.sql.series import SeriesStatements, Stand
from django_once.sql.values import CANCELLED, PREDECESSOR, SUPERSEDED, NewJob, Stored

Answer = TypeVar("Answer")

# What became of the wish for a job under a key.
Disposition = Literal["added", "replaced", "waiting", "running"]
# What a replacement does about a job that runs under its key.
QUEUE_ONE: Final = "queue_one"
SUPERSEDE: Final = "supersede"


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a wish: the job that stands for it now, and its generation."""

    disposition: Disposition
    job: UUID
    generation: int
    stored: Stored | None = None


def add(database: str, job: NewJob) -> Placed:
    """Store this job unless one waits or runs under its key; say which it was."""
    return _together(database, partial(_add, job=job))


def add_unless_stopped(database: str, job: NewJob) -> bool:
    """Store this job unless one waits or runs under its key, or somebody has stopped the series."""
    return _together(database, partial(_add_unless_stopped, job=job))


def replace(database: str, job: NewJob, while_running: str) -> Placed:
    """Store this job in place of what waits under its key, whatever runs there.

    A job that runs is asked to end, or with "queue_one" is waited for; it can name no successor.
    """
    return _together(database, partial(_replace, job=job, while_running=while_running))


def stop(database: str, backend: str, key: str) -> int:
    """End what waits under a key, ask what runs there to end, and name nothing after it.

    Returns how many jobs that were. The next `add` or `replace` begins anew, one generation on.
    """
    return _together(database, partial(_stop, backend=backend, key=key))


def present(database: str, backend: str, key: str) -> UUID | None:
    """Return the present job of a key, or None when there is none."""
    found = Series.objects.using(database).filter(backend=backend, key=key)
    return found.values_list("job", flat=True).first()


def in_place_of(database: str, job: UUID) -> UUID | None:
    """Return the present job of the series in which this one was replaced, or None."""
    replaced = Job.objects.using(database).filter(pk=job, reason=SUPERSEDED, key__isnull=False)
    for backend, key in replaced.values_list("backend", "key"):
        return present(database, backend, key or "")
    return None


def _add(series: SeriesStatements, job: NewJob) -> Placed:
    assert job.key is not None
    stand = series.lock(job.backend, job.key)
    status = series.status_of(stand.job) if stand.job is not None else None
    if stand.job is not None and status in (Job.READY, Job.RUNNING):
        there: Disposition = "waiting" if status == Job.READY else "running"
        return Placed(there, stand.job, stand.generation)
    return _named(series, stand, job, "added")


def _add_unless_stopped(series: SeriesStatements, job: NewJob) -> bool:
    assert job.key is not None
    if series.lock(job.backend, job.key).is_cancelled:
        return False
    return _add(series, job).disposition == "added"


def _replace(series: SeriesStatements, job: NewJob, while_running: str) -> Placed:
    assert job.key is not None
    stand = series.lock(job.backend, job.key)
    error = Superseded("Another job was put in the place of this one before it ran.")
    series.end_waiting(stand, SUPERSEDED, _entry(SUPERSEDED, error))
    if while_running == QUEUE_ONE:
        if series.running(job.backend, [job.key]):
            job = changed(job, blocked_by=PREDECESSOR)
    else:
        series.ask_running_to_end(stand)
    return _named(series, stand, job, "replaced")


def _named(series: SeriesStatements, stand: Stand, job: NewJob, disposition: Disposition) -> Placed:
    generation = stand.generation + 1
    stored = series.statements.insert(changed(job, generation=generation))
    if not series.move(stand, job.id):
        raise Superseded(f"The series of {stand.key!r} moved on although it was locked.")
    return Placed(disposition, job.id, generation, stored)


def _stop(series: SeriesStatements, backend: str, key: str) -> int:
    stand = series.lock(backend, key)
    error = Cancelled("The series of this job was cancelled before it ran.")
    ended = series.end_waiting(stand, CANCELLED, _entry(CANCELLED, error))
    ended += series.ask_running_to_end(stand)
    series.stop(stand)
    return ended


def _entry(kind: str, error: Exception) -> str:
    return payload.entry(kind, error, attempt=0, worker="", history_length=0)


def _together(database: str, work: Callable[[SeriesStatements], Answer]) -> Answer:
    """Do this in one transaction, or as part of the caller's."""
    statements = sql.on(database)

    def attempt() -> Answer:
        with statements.together():
            return work(SeriesStatements(statements))

    return repeated(statements.connection, attempt)
