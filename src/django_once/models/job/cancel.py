"""Cancelling: what waits ends at once, what runs is asked to.

A completion that commits first wins. A running job that was asked to end may look
(`context.check()`), and if it comes back to be tried again it ends as cancelled instead. A job
that is locked is passed over and counted: an `exactly_once` body holds its row, and its commit
decides. A series ends with its present job: nothing would come after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final
from uuid import UUID

from django.db import transaction

from django_once import payload, sql
from django_once.errors import Cancelled
from django_once.models.gate.admit import admit
from django_once.models.job.row import Job
from django_once.models.series.hold import hold, stop_cancelled
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements
from django_once.sql.values import CANCELLED, Cancellation
from django_once.wakeups.listen import announce

# A claim or a settle holds a row for some milliseconds, a body for as long as it takes.
PAUSES: Final = (0.0, 0.01, 0.05, 0.2)
BATCH: Final = 500


def cancel(database: str, ids: Iterable[UUID]) -> Cancellation:
    """End these jobs as cancelled, or ask those that run to end; return how many of each.

    What has ended stays as it is, and is not counted.
    """
    statements = sql.on(database)
    wanted = sorted(set(ids))
    ended = requested = 0
    for pause in PAUSES:
        time.sleep(pause)
        busy: list[UUID] = []
        for start in range(0, len(wanted), BATCH):
            part = wanted[start : start + BATCH]
            left = slots_of(database, part)
            done, asked, locked = repeated(
                statements.connection, partial(_cancel_free, statements, part)
            )
            if left and done:
                pass_on(database, left)
            ended, requested = ended + done, requested + asked
            busy += locked
        wanted = busy
        if not wanted:
            break
    return Cancellation(ended, requested, len(wanted))


def slots_of(database: str, ids: Iterable[UUID]) -> dict[str, set[str]]:
    """Return the gates, by their backends, of which waiting jobs among these hold a slot."""
    held = Job.objects.using(database).filter(
        pk__in=list(ids), status=Job.READY, gate__isnull=False, position__isnull=False
    )
    gates: dict[str, set[str]] = {}
    for backend, gate in held.values_list("backend", "gate"):
        gates.setdefault(backend, set()).add(str(gate))
    return gates


def pass_on(database: str, gates: Mapping[str, set[str]]) -> None:
    """Give the slots that were freed to those who wait, when the caller's transaction commits."""

    def admit_each() -> None:
        for backend, names in gates.items():
            if admit(database, backend, names):
                announce(database, backend, is_ready=True)

    transaction.on_commit(admit_each, using=database, robust=True)


def _cancel_free(statements: Statements, ids: list[UUID]) -> tuple[int, int, list[UUID]]:
    """Cancel those of these jobs that nobody has locked; return the others as well."""
    jobs = Job.objects.using(statements.connection.alias).filter(
        pk__in=ids, status__in=[Job.READY, Job.RUNNING]
    )
    error = Cancelled("The job was cancelled before an attempt of it ended.")
    entry = payload.entry(CANCELLED, error, attempt=0, worker="", history_length=0)
    with statements.together():
        series = hold(statements, ids)
        free = statements.free([id for id in ids if id not in series.busy])
        ended = statements.cancel_waiting(free, entry) if free else 0
        requested = statements.cancel_running(free) if free else 0
        stop_cancelled(statements, series)
        held = set(jobs.values_list("pk", flat=True)) - set(free)
    return ended, requested, sorted(held)
