"""Ending what others held: attempts whose worker is gone, and claims that nobody remembers.

Who may have done its work, and who has not begun? The answer decides, and the evidence differs. A
supervisor that reaped a child knows which bodies had been called: these are charged with the death,
and nothing else is. When the evidence died too (a host was lost), all come back as suspects, to be
run alone; a suspect that was started, hence was alone, is charged. What had not begun comes back
free, as if never claimed. A job that may be started once only, and was, is for a person to decide.

A body that ran past its timeout was killed with its process, and nobody is charged with a death:
its job ends as one whose body raised `TimedOut`, and its siblings come back.

`at_most_once` and suspects have their start on record before the call, so their row is the
evidence; for the others a row may not know yet that a body was called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from uuid import UUID

from django_once import payload, sql
from django_once.errors import Cancelled, Lost, TimedOut
from django_once.models.series.settle import end_free
from django_once.sql.endings import ORPHANED
from django_once.sql.repeat import repeated
from django_once.sql.values import CANCELLED, DIED, LOST, TIMED_OUT, Held, Outcome, Swept, Whose

BATCH = 1_000

# What was called, as (job, claim).
Bodies = Collection[tuple[UUID, UUID]]
# Seconds until the policy of a held job lets it be tried again, or None when it does not.
Policy = Callable[[Held], float | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an attempt whose worker cannot be asked."""

    has_begun: bool
    is_charged: bool
    becomes_suspect: bool
    sentence: str
    overran: bool = False
    again_in: float | None = None


# None: this job is not meant.
Judge = Callable[[Held], Evidence | None]


def never_again(_: Held) -> None:
    """Return that no policy tries this job again."""


def sweep(database: str, most: int = BATCH) -> list[Swept]:
    """Take running jobs from workers that are gone; return what became of each.

    Every running job without a living worker, at every call: a worker that claimed once more after
    it was declared lost is found too. Rows that somebody has locked are skipped.
    """
    return _take(database, ORPHANED, _without_evidence, most)


def expire_dead(
    database: str, worker: UUID, started: Bodies, reason: str,
    *, charged: bool = True, overran: Bodies = (), policy: Policy = never_again,
) -> list[Swept]:  # fmt: skip
    """Take at once what a worker held that its supervisor reaped; return what became of each.

    `started` names the bodies that had been called; they are charged with the death, unless it
    came from outside (`charged=False`). `reason` is how the process ended, for the history. A body
    that was called, but is not named, comes back uncharged. Those that `overran` their timeout
    ended as failures, and `policy` says of each when it is tried again.
    """
    named, late = frozenset(started), frozenset(overran)

    def judge(held: Held) -> Evidence:
        body = (held.id, held.claim)
        evidence = _reaped(held, body in named, reason, charged)
        if not evidence.has_begun or body not in late:
            return evidence
        sentence = f"The body ran past its timeout in worker {held.worker_name!r}, and was ended."
        return replace(
            evidence, is_charged=False, becomes_suspect=False, sentence=sentence, overran=True,
            again_in=policy(held),
        )  # fmt: skip

    swept: list[Swept] = []
    while True:
        taken = _take(database, sql.on(database).of_worker(worker), judge)
        swept += taken
        if len(taken) < BATCH:
            return swept


def is_empty_handed(database: str, worker: UUID) -> bool:
    """Return whether no running job stands as this worker's."""
    return not sql.on(database).claims_of(worker)


def relieve(database: str, worker: UUID, begun: Collection[UUID]) -> list[Swept]:
    """Give back what a silent worker holds and has not begun; return what became of each.

    Race: the worker comes to life meanwhile, and starts one of them. It was told before that its
    claims are in doubt, so that it starts them only under `start`, which finds the claim gone.
    """

    def judge(held: Held) -> Evidence | None:
        return None if held.id in begun or held.was_started else _forgotten(held)

    return _take(database, sql.on(database).of_worker(worker), judge)


def reconcile(database: str, worker: UUID, held: Collection[UUID]) -> list[Swept]:
    """Give back what stands as this worker's under claims that it neither holds nor awaits.

    So a claim that committed, but whose answer was lost, comes back without an attempt burnt.
    Call it from the thread that claims: a claim that commits after `held` was listed would
    seem forgotten.
    """
    statements = sql.on(database)
    unheld = sorted(statements.claims_of(worker) - set(held))
    if not unheld:
        return []
    return _take(database, statements.of_claims(worker, unheld), _forgotten)


def after_loss(held: Held, evidence: Evidence) -> Outcome:
    """Return what becomes of a job whose attempt ends without its worker's word."""
    has_begun = evidence.has_begun
    if evidence.overran:
        reason = TIMED_OUT if evidence.again_in is None else ""
    elif held.delivery == "at_most_once" and has_begun:
        reason = LOST
    elif evidence.is_charged and held.deaths >= held.max_deaths:
        reason = DIED
    elif held.cancel_requested:
        reason = CANCELLED
    else:
        reason = ""
    return Outcome(
        id=held.id,
        claim=held.claim,
        status="FAILED" if reason else "READY",
        reason=reason or (TIMED_OUT if evidence.overran else LOST),
        entry=_entry(held, evidence, reason),
        delay=evidence.again_in or 0.0,
        failed=evidence.overran,
        # It began before now; when, only its worker knew.
        ran=0.0 if has_begun and not held.was_started else None,
        given_back=not has_begun,
        died=evidence.is_charged,
        suspect=evidence.becomes_suspect,
        taken=True,
    )


def _without_evidence(held: Held) -> Evidence:
    return Evidence(
        has_begun=held.was_started,
        is_charged=held.was_started and held.is_suspect,
        becomes_suspect=held.is_suspect or held.delivery != "at_most_once",
        sentence=f"Worker {held.worker_name!r} is gone: its lease lapsed while it held this job.",
    )


def _reaped(held: Held, is_named: bool, reason: str, charged: bool) -> Evidence:
    is_on_record = held.is_suspect or held.delivery == "at_most_once"
    has_begun = held.was_started or (is_named and not is_on_record)
    is_charged = charged and has_begun and (is_named or held.is_suspect)
    return Evidence(
        has_begun=has_begun,
        is_charged=is_charged,
        # Which of several bodies killed the process is not known: each is run alone next.
        becomes_suspect=is_charged or held.is_suspect,
        sentence=f"Worker {held.worker_name!r} died while it held this job: {reason}.",
    )


def _forgotten(held: Held) -> Evidence:
    return Evidence(
        has_begun=held.was_started,
        is_charged=False,
        becomes_suspect=held.is_suspect,
        sentence=f"Worker {held.worker_name!r} no longer held this job.",
    )


def _entry(held: Held, evidence: Evidence, reason: str) -> str | None:
    """Return the history's next entry; what has not begun and goes on leaves none."""
    error: Exception
    if evidence.overran:
        kind, error, attempt = TIMED_OUT, TimedOut(evidence.sentence), held.attempt
        worker = held.worker_name
    elif evidence.has_begun:
        kind = DIED if evidence.is_charged else LOST
        error = Lost(f"{evidence.sentence} It may or may not have done its work.")
        attempt, worker = held.attempt, held.worker_name
    elif reason == CANCELLED:
        kind, error, attempt, worker = CANCELLED, Cancelled("Cancelled before it began."), 0, ""
    else:
        return None
    return payload.entry(
        kind, error, attempt=attempt, worker=worker, history_length=held.history_length
    )


def _take(database: str, whose: Whose, judge: Judge, most: int = BATCH) -> list[Swept]:
    """End what is found and judged, in transactions that hold its rows; tell what became of it."""
    statements = sql.on(database)

    def take() -> list[Swept]:
        with statements.planned():
            taken = _judged(statements.held(whose, most), judge)
            ended = statements.settle([outcome for _, outcome in taken]) if taken else set()
        return [_swept(held, outcome) for held, outcome in taken if held.id in ended]

    swept = repeated(statements.connection, take)
    keyed = statements.held_under_keys(whose, most)
    return swept + (_take_under_keys(database, whose, judge, keyed) if keyed else [])


def _take_under_keys(database: str, whose: Whose, judge: Judge, jobs: list[UUID]) -> list[Swept]:
    """End what is found under keys, together with what its series do next."""
    statements = sql.on(database)
    taken: dict[UUID, tuple[Held, Outcome]] = {}

    def outcomes_of(free: list[UUID]) -> list[Outcome]:
        judged = _judged(statements.held_among(whose, free), judge) if free else []
        taken.update((held.id, (held, outcome)) for held, outcome in judged)
        return [outcome for _, outcome in judged]

    swept: list[Swept] = []
    while jobs:
        ended = end_free(database, jobs, outcomes_of)
        if not ended.looked_at:
            # Somebody has the rest, who ends it or lets it go.
            break
        swept += [_swept(*taken[job]) for job in ended.settled]
        jobs = [job for job in jobs if job not in ended.looked_at]
    return swept


def _judged(found: list[Held], judge: Judge) -> list[tuple[Held, Outcome]]:
    judged = [(held, judge(held)) for held in found]
    return [(held, after_loss(held, evidence)) for held, evidence in judged if evidence]


def _swept(held: Held, outcome: Outcome) -> Swept:
    return Swept(held.id, held.task, outcome.status, outcome.reason, held.worker)
