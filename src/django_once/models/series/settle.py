"""Ending attempts under a key, together with naming the next: both commit, or neither.

Only the present job of a series may name its successor, or come back for another try. What was
replaced meanwhile gives way: a success is kept, since it is true, and so is a death; everything
else ends as superseded.

The moments of a series lie on a grid that its first job begins. So a body that takes long, a retry
or a worker that comes late moves one run and none of those after it, and what was missed is not
run later in a bunch.

A crash between an end and its successor would end the succession. So both are one transaction,
whoever ends the attempt: its worker, or whoever took it from a worker that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django_once import events, identity, payload, sql
from django_once.errors import Superseded
from django_once.models.job.row import Job
from django_once.models.series.hold import free_stands
from django_once.sql.counts import moment_from_now
from django_once.sql.repeat import repeated
from django_once.sql.series import SeriesStatements, Stand, Successor, Turn
from django_once.sql.statements import Statements
from django_once.sql.values import (
    CANCELLED,
    DIED,
    EXPIRED,
    LOST,
    SUPERSEDED,
    TIMED_OUT,
    Next,
    Outcome,
)

# Failures that a replacement did not ask for: what it was asked for is to end.
OWN_ENDS: Final = (LOST, DIED, TIMED_OUT, EXPIRED)

# The outcomes of those jobs that are free to be ended now.
Judge = Callable[[list[UUID]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt that is about to end: its outcome, its job's turn, and where the series stands."""

    outcome: Outcome
    turn: Turn
    stand: Stand

    @property
    def is_present(self) -> bool:
        """Whether its job is still the one that its series stands at."""
        return self.stand.is_at(self.turn)

    def given_way(self) -> Outcome:
        """Return its outcome, as far as a replacement leaves it standing."""
        outcome = self.outcome
        is_true = outcome.status == Job.FAILED and outcome.reason in OWN_ENDS
        if self.is_present or is_true or outcome.status == Job.SUCCESSFUL:
            return outcome
        error = Superseded(
            f"Generation {self.turn.generation} of {self.turn.key!r} was superseded by "
            f"{self.stand.generation} before it ended."
        )
        entry = payload.entry(SUPERSEDED, error, attempt=0, worker="", history_length=0)
        return outcome._replace(
            status=Job.FAILED, reason=SUPERSEDED, blocked_by="", delay=0.0,
            entry=outcome.entry or entry,
        )  # fmt: skip

    def successor(self, now: datetime) -> Successor | None:
        """Return the job that comes next, if this attempt may name one and its task goes on."""
        every, wish = self.turn.every, self.outcome.next or Next()
        if not self.is_present or every is None or wish.stops:
            return None
        if wish.at is not None:
            due_at = wish.at
        elif wish.after is not None:
            due_at = now + timedelta(seconds=wish.after)
        else:
            due_at = next_moment(self.turn.planned_at, every, now)
        return Successor(
            after=self.turn, id=identity.job_id(), due_at=due_at, args=wish.args,
            kwargs=wish.kwargs,
        )  # fmt: skip


def next_moment(planned_at: datetime, every: timedelta, now: datetime) -> datetime:
    """Return the first moment of the grid that is still to come."""
    if now < planned_at:
        return planned_at + every
    return planned_at + ((now - planned_at) // every + 1) * every


def settle_in_series(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """End these attempts and name what comes after; return the ids of the superseded.

    Raises what the database says of a value that it refuses; nothing of that batch is written.
    """
    by_id = {outcome.id: outcome for outcome in outcomes}

    def judge(free: list[UUID]) -> list[Outcome]:
        return [by_id[job] for job in free]

    ended = end_free(database, list(by_id), judge)
    for outcome in outcomes:
        if outcome.id not in ended.looked_at:
            ended = ended | _end_waiting_for_locks(database, outcome)
    return set(by_id) - ended.settled


@dataclass(frozen=True, slots=True)
class Ended:
    """Which jobs were looked at, and which of them were still held and have ended."""

    looked_at: frozenset[UUID] = frozenset()
    settled: frozenset[UUID] = frozenset()

    def __or__(self, other: Ended) -> Ended:
        return Ended(self.looked_at | other.looked_at, self.settled | other.settled)


def end_free(database: str, jobs: Collection[UUID], judge: Judge) -> Ended:
    """End those of these jobs whose series and row nobody has locked, as `judge` says."""
    statements = sql.on(database)
    return repeated(statements.connection, partial(_end_free, statements, jobs, judge))


def name_next(database: str, job: UUID, wish: Next | None) -> None:
    """Name what comes after a job whose success stands in the caller's transaction already."""
    statements = sql.on(database)
    series = SeriesStatements(statements)
    for turn in series.turns([job]):
        outcome = Outcome(id=job, claim=job, status=Job.SUCCESSFUL, next=wish)
        stand = series.lock(turn.backend, turn.key)
        _move_on(series, [Ending(outcome, turn, stand)])


def _end_free(statements: Statements, jobs: Collection[UUID], judge: Judge) -> Ended:
    with statements.planned():
        series = SeriesStatements(statements)
        # One of each series: the second would meet what the first has moved.
        turns = {(turn.backend, turn.key): turn for turn in series.turns(list(jobs))}
        stands = free_stands(series, turns)
        by_job = {turns[place].job: stands[place] for place in stands}
        free = statements.free(list(by_job)) if by_job else []
        of_job = {turn.job: turn for turn in turns.values()}
        endings = [
            Ending(outcome, of_job[outcome.id], by_job[outcome.id]) for outcome in judge(free)
        ]
        return Ended(frozenset(free), _end(series, endings))


def _end_waiting_for_locks(database: str, outcome: Outcome) -> Ended:
    statements = sql.on(database)

    def end() -> Ended:
        with statements.together():
            series = SeriesStatements(statements)
            endings = [
                Ending(outcome, turn, series.lock(turn.backend, turn.key))
                for turn in series.turns([outcome.id])
            ]
            return Ended(frozenset([outcome.id]), _end(series, endings))

    return repeated(statements.connection, end)


def _end(series: SeriesStatements, endings: Sequence[Ending]) -> frozenset[UUID]:
    """End these attempts under their claims, and let their series move on; return which ended."""
    settled = series.statements.settle([ending.given_way() for ending in endings])
    _move_on(series, [ending for ending in endings if ending.turn.job in settled])
    return frozenset(settled)


def _move_on(series: SeriesStatements, endings: Sequence[Ending]) -> None:
    """Name the next of each series whose present job has ended, or let the one that waits run."""
    ends = series.ends([ending.turn.job for ending in endings]) if endings else {}
    over = [ending for ending in endings if ending.turn.job in ends]
    if not over:
        return
    now = moment_from_now(series.statements)
    successors: list[tuple[Ending, Successor]] = []
    for ending in over:
        was_cancelled = ends[ending.turn.job] == CANCELLED
        successor = None if was_cancelled else ending.successor(now)
        if successor is not None:
            successors.append((ending, successor))
        elif ending.is_present and (was_cancelled or ending.turn.every is not None):
            _moved(series.stop(ending.stand), ending)
        elif not ending.is_present:
            events.series_superseded(ending.turn, ending.stand.generation)
    if successors:
        series.succeed([successor for _, successor in successors])
        for ending, successor in successors:
            _moved(series.move(ending.stand, successor.id), ending)
    followed = {ending.turn.key for ending, _ in successors}
    for backend in {ending.turn.backend for ending in over}:
        keys = {ending.turn.key for ending in over if ending.turn.backend == backend}
        series.admit(backend, keys - followed)


def _moved(has_moved: bool, ending: Ending) -> None:
    if not has_moved:
        raise Superseded(
            f"The series of {ending.turn.key!r} moved on from generation "
            f"{ending.stand.generation} although its row was locked: its end was not kept."
        )
