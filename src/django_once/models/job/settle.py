"""Ending attempts: many at once, each under the claim that began it.

An attempt is open while its job is RUNNING under its claim, and it ends once. Whoever ends it
(the worker, or a sweep when the lease has lapsed) decides what becomes of the job, in one
statement. Everybody else is superseded: their outcome is dropped, told, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from uuid import UUID

from django.db import DatabaseError, connections, transaction

from django_once import payload, sql
from django_once.errors import NotStorable
from django_once.models.job.row import Job
from django_once.models.series.settle import settle_in_series
from django_once.sql.pieces import pieces
from django_once.sql.removals import Removals
from django_once.sql.repeat import repeated, was_refused
from django_once.sql.values import RAISED, Attempt, Fate, Outcome

# Ends attempts and returns the ids of the superseded.
End = Callable[[str, Sequence[Outcome]], set[UUID]]


def settle(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """End these attempts; return the ids of the superseded, whose outcomes were not kept.

    A value that the database refuses ends its own job as FAILED, with the reason in its history,
    and no other. Any other error says nothing about the batch: ask `what_became`, or send it again.
    """
    superseded: set[UUID] = set()
    removed = [outcome for outcome in outcomes if outcome.removed]
    for batch in pieces(removed, _length):
        superseded |= _settle(database, batch, _removed)
    if removed:
        outcomes = [outcome for outcome in outcomes if not outcome.removed]
    # Apart, since a statement that says only this is twice as quick, and most say only this.
    successes = [outcome for outcome in outcomes if outcome.is_plain_success]
    if len(successes) < len(outcomes):
        others = [outcome for outcome in outcomes if not outcome.is_plain_success]
        for batch in pieces([outcome for outcome in others if outcome.key is not None], _length):
            superseded |= _settle(database, batch, settle_in_series)
        for batch in pieces([outcome for outcome in others if outcome.key is None], _length):
            superseded |= _settle(database, batch, _settled_alone)
    for batch in pieces(successes, _length):
        superseded |= _settle(database, batch, _settled_alone)
    return superseded


def _settle(database: str, outcomes: Sequence[Outcome], end: End) -> set[UUID]:
    try:
        with _apart(database):
            return end(database, outcomes)
    except DatabaseError as error:
        if not was_refused(error):
            raise
        if len(outcomes) == 1:
            return _settle_as_not_storable(database, outcomes[0], error, end)
        middle = len(outcomes) // 2
        first, last = outcomes[:middle], outcomes[middle:]
        return _settle(database, first, end) | _settle(database, last, end)


def _settled_alone(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    statements = sql.on(database)
    settled = repeated(statements.connection, lambda: statements.settle(outcomes))
    return set() if len(settled) == len(outcomes) else {one.id for one in outcomes} - settled


def _removed(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    statements = sql.on(database)
    held = repeated(statements.connection, lambda: Removals(statements).remove(outcomes))
    return {outcome.id for outcome in outcomes} - held


def _settle_as_not_storable(
    database: str, outcome: Outcome, error: DatabaseError, end: End
) -> set[UUID]:
    """End an attempt whose outcome the database refused to keep."""
    refusal = NotStorable(f"The outcome of job {outcome.id} could not be stored: {error}")
    failed = outcome._replace(
        status=Job.FAILED,
        reason=RAISED,
        return_value=None,
        entry=payload.entry(RAISED, refusal, attempt=0, worker="", history_length=0),
        failed=True,
        removed=False,
    )
    with _apart(database):
        return end(database, [failed])


def _length(outcome: Outcome) -> int:
    return len(outcome.return_value or "") + len(outcome.entry or "")


def what_became(
    database: str, attempts: Sequence[tuple[UUID, UUID]], removed: Collection[UUID] = ()
) -> dict[UUID, Fate]:
    """Return what became of each (job, claim) whose answer was lost.

    Those jobs in `removed` have no row after their success, and none goes before it. Reads the
    rows with a lock, and waits for it: a plain read can miss a commit still in flight.
    """
    no_key = connections[database].features.has_select_for_no_key_update
    locking = Job.objects.using(database).select_for_update(no_key=no_key)
    jobs = locking.filter(pk__in={job for job, _ in attempts}).order_by("pk")
    with transaction.atomic(using=database, savepoint=False):
        rows = jobs.values_list("pk", "claim", "status")
        states = {job: (claim, status) for job, claim, status in rows}
    fates: dict[UUID, Fate] = {}
    for job, claim in attempts:
        last, status = states.get(job, (claim if job in removed else None, ""))
        if last != claim:
            fates[job] = "superseded"
        else:
            fates[job] = "held" if status == Job.RUNNING else "settled"
    return fates


def start(database: str, attempt: Attempt) -> bool:
    """Commit that this attempt's body is about to be called; False when it may not be.

    For `at_most_once`, where a claim is not a start, and for suspects.
    """
    return sql.on(database).start(attempt.id, attempt.claim)


def deny_success(database: str, job: UUID, claim: UUID) -> bool:
    """Take back a success that an `exactly_once` body committed by itself, ahead of its end."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: statements.deny_success(job, claim))


def mark_started(database: str, started: Sequence[tuple[UUID, UUID, float]]) -> int:
    """Write down when these bodies were called: (job, claim, seconds ago). For people's eyes."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: statements.mark_started(started))


def _apart(database: str) -> AbstractContextManager[None]:
    """A savepoint in somebody else's transaction, so that a refused value does not break it."""
    if connections[database].in_atomic_block:
        return transaction.atomic(using=database)
    return nullcontext()
