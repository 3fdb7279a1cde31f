"""Firing: what is due is decided, recorded and enqueued in one transaction, whoever is first.

A scheduler locks due schedules, passing over those that another holds, and decides each from its
row and the database's now. A row that cannot be decided (a zone that vanished, arguments that fit
no more) is recorded with its problem and put off; it neither stops nor delays another. Jobs of
ours are enqueued in the same transaction. What a foreign backend shall run is dispatched after
the commit, each on its own, so that one broken broker costs one dispatch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django_once import calls, compat, events, sql
from django_once.declare import options_of, unchecked_copy
from django_once.definitions import registry, schedule, timetable
from django_once.definitions.schedule import Decision, Pause, Policies, Rule, Verdict
from django_once.errors import InvalidOption, OnceError
from django_once.models.execution import turn
from django_once.models.execution.look import open_runs, recorded
from django_once.models.schedule.due import Due, lock, lock_due
from django_once.models.schedule.move import AlreadyFired, move
from django_once.scheduling import dispatch
from django_once.scheduling.readings import call_of, configured_task, is_ours, policies_of, rule_of
from django_once.sql.schedules import Move, Record

# So many schedules share a transaction: enough to be quick, few enough to leave some to others.
BATCH: Final = 250
# A schedule that cannot be decided is looked at again after so long.
PUT_OFF: Final = timedelta(seconds=60)
# What an enqueue refuses because of what the schedule says, whatever the database is.
REFUSALS: Final = (
    TypeError, ValueError, RecursionError, OnceError, compat.InvalidTask, compat.InvalidTaskBackend,
)  # fmt: skip
# What the words of a row can make of it, whoever wrote them.
UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, LookupError)


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction decided, and the tasks that others must look after."""

    looked_at: int = 0
    fired: int = 0
    skipped: int = 0
    unknown: frozenset[str] = frozenset()


@dataclass(slots=True)
class Firing:
    """One schedule's due moments: what is decided of them, and what becomes of each."""

    due: Due
    decision: Decision
    rule: Rule
    policies: Policies
    # By due moment: the job of ours, where it is enqueued.
    jobs: dict[datetime, UUID] = field(default_factory=dict)
    # Moments whose job was there already, under the name or the key that the task gives it.
    joined: set[datetime] = field(default_factory=set)
    refused: str = ""


def fire_due(
    database: str, unknown: Collection[str] = (), most: int = BATCH, lease: float = dispatch.LEASE
) -> Fired:
    """Fire up to so many schedules that are due now, the longest due first.

    A moment that has a record already (of a backfill, or of a run by hand) undoes the whole; the
    second time it is left out.
    """
    declared = timetable.declared()
    for looks in (False, True, True):
        try:
            with sql.transaction_on(database):
                now, found = lock_due(database, most, declared=declared, unknown=unknown)
                known = [due for due in found if registry.find(due.task) is not None]
                fired = fire(database, known, now, lease=lease, looks=looks)
                others = {due.task for due in found} - {due.task for due in known}
                return replace(fired, looked_at=len(found), unknown=frozenset(others))
        except AlreadyFired:
            continue
    return Fired()


def fire(
    database: str, found: Sequence[Due], now: datetime, *, lease: float = dispatch.LEASE,
    looks: bool = True,
) -> Fired:  # fmt: skip
    """Fire what is due of these schedules, which the caller's transaction has locked.

    `looks` says to look first for moments that have a record.
    """
    firings, moves = _decide(database, found, now)
    if looks:
        _leave_out_recorded(database, firings)
    _enqueue(database, firings)
    moves += [_move_of(firing) for firing in firings]
    records = [one for firing in firings for one in _records_of(firing, lease)]
    move(database, moves, records)
    backends = {due.id: due.backend for due in found}
    for one in records:
        if one.lease is not None:
            dispatch.after_commit(database, backends[one.schedule], one.id)
    for firing in firings:
        events.schedule_fired(firing.due.name, firing.decision.verdicts, firing.refused)
    fired = sum(one.status == "PENDING" for one in records)
    return Fired(len(found), fired, len(records) - fired)


def _decide(database: str, found: Sequence[Due], now: datetime) -> tuple[list[Firing], list[Move]]:
    """Return what becomes of each schedule, and how those are put off that cannot be decided."""
    meets = [due.id for due in found if due.overlap != schedule.ALLOW and due.next_due_at]
    open_now = open_runs(database, meets)
    firings, moves = [], []
    for due in found:
        try:
            firings.append(_decided(due, now, open_now.get(due.id, 0)))
        except UNREADABLE as problem:
            moves.append(_put_off(due, now, str(problem)))
    return firings, moves


def _decided(due: Due, now: datetime, open_now: int) -> Firing:
    rule, policies = rule_of(due), policies_of(due)
    if due.next_due_at is None:
        # A row that was inserted without a due moment: from its beginning on, none is lost.
        first = rule.after(due.watermark or due.rule_since)
        return Firing(due, Decision((), first), rule, policies)
    pause = None if due.paused_at is None else Pause(due.paused_at, due.paused_until)
    decision = schedule.decide(
        rule, policies, due.next_due_at, now, pause=pause, open_runs=open_now
    )
    return Firing(due, decision, rule, policies)


def _leave_out_recorded(database: str, firings: Sequence[Firing]) -> None:
    """Leave out moments that have a record: of a backfill, or of a run by hand at that instant."""
    moments = {
        firing.due.id: [one.due_at for one in firing.decision.verdicts] for firing in firings
    }
    known = recorded(database, moments)
    for firing in firings:
        verdicts = tuple(
            one for one in firing.decision.verdicts if (firing.due.id, one.due_at) not in known
        )
        firing.decision = replace(firing.decision, verdicts=verdicts)


def _enqueue(database: str, firings: Sequence[Firing], run_after: timedelta | None = None) -> None:
    """Enqueue the jobs of all runs that begin now; a firing that is refused keeps the reason."""
    groups: dict[tuple[str, str, int, str], list[tuple[Firing, Verdict]]] = defaultdict(list)
    for firing in firings:
        due = firing.due
        for verdict in firing.decision.verdicts:
            if verdict.runs and not verdict.reason:
                groups[due.task, due.queue, due.priority, due.backend].append((firing, verdict))
    for (task, queue, priority, backend), members in groups.items():
        try:
            configured = configured_task(database, task, queue, priority, backend)
        except REFUSALS as refusal:
            for firing, _ in members:
                firing.refused = str(refusal)
            continue
        if is_ours(backend):
            _enqueue_alike(unchecked_copy(configured, run_after=run_after), members)
        else:
            _check_calls(configured, members)


def _enqueue_alike(task: compat.AnyTask, members: Sequence[tuple[Firing, Verdict]]) -> None:
    """Enqueue jobs of one task in one statement; where one is refused, each on its own."""
    backend: Any = task.get_backend()
    _check_calls(task, members)
    fit = [(firing, verdict) for firing, verdict in members if not firing.refused]
    said = options_of(task)
    if any(said.get(name) for name in ("unique", "key", "perpetual")):
        _enqueue_each(backend, task, fit)
        return
    pairs = [call_of(firing.due) for firing, _ in fit]
    try:
        for (firing, verdict), id in zip(fit, backend.enqueue_many(task, pairs).ids, strict=True):
            firing.jobs[verdict.due_at] = UUID(id)
    except REFUSALS:
        _enqueue_each(backend, task, fit)


def _enqueue_each(
    backend: Any, task: compat.AnyTask, members: Sequence[tuple[Firing, Verdict]]
) -> None:
    """Enqueue one after the other: each may be refused, or find its job there already."""
    for firing, verdict in members:
        try:
            result = backend.enqueue(task, *call_of(firing.due))
        except REFUSALS as refusal:
            firing.refused = str(refusal)
            continue
        if result.is_new:
            firing.jobs[verdict.due_at] = UUID(str(result.id))
        else:
            firing.joined.add(verdict.due_at)


def _check_calls(task: compat.AnyTask, members: Sequence[tuple[Firing, Verdict]]) -> None:
    for firing, _ in members:
        try:
            args, kwargs = call_of(firing.due)
            calls.bound(task, args, kwargs)
        except REFUSALS as refusal:
            firing.refused = str(refusal)


def _records_of(firing: Firing, lease: float) -> list[Record]:
    due = firing.due
    records = []
    for verdict in firing.decision.verdicts:
        reason = verdict.reason
        if verdict.runs and firing.refused and verdict.due_at not in firing.jobs:
            reason = schedule.REFUSED
        if verdict.due_at in firing.joined:
            reason = schedule.NOT_UNIQUE
        is_run = reason in ("", schedule.QUEUED)
        is_sent = is_run and not reason and not is_ours(due.backend)
        records.append(
            Record(
                id=uuid4(),
                schedule=due.id,
                due_at=verdict.due_at,
                through=verdict.through,
                status="PENDING" if is_run else "SKIPPED",
                reason=reason,
                job=firing.jobs.get(verdict.due_at),
                lease=lease if is_sent else None,
                retention=due.retention,
            )
        )
    return records


def _move_of(firing: Firing) -> Move:
    due, decision = firing.due, firing.decision
    following = decision.next_due_at
    runs = sum(one.runs for one in decision.verdicts) - len(firing.joined)
    if firing.refused:
        runs = len(firing.jobs)
    reached = [one.through or one.due_at for one in decision.verdicts]
    expect = firing.policies.expect
    awaited = [one.due_at for one in decision.verdicts if one.reason != schedule.PAUSED]
    return Move(
        schedule=due.id,
        version=due.version,
        seen=due.next_due_at,
        next_due_at=following,
        fires_at=firing.rule.fires_at(following) if following is not None else None,
        watermark=max(reached) if reached else None,
        fired=runs,
        skipped=len(decision.verdicts) - runs,
        expected_by=awaited[0] + expect if awaited and expect is not None else None,
        problem=firing.refused,
    )


def _put_off(due: Due, now: datetime, problem: str) -> Move:
    events.schedule_broken(due.name, problem)
    return Move(
        schedule=due.id,
        version=due.version,
        seen=due.next_due_at,
        next_due_at=due.next_due_at,
        fires_at=now + PUT_OFF,
        problem=problem,
    )


def begin_next_in_turn(database: str, lease: float = dispatch.LEASE) -> int:
    """Begin the runs whose turn it is, because the ones before them have ended; count them."""
    ids = turn.next_in_turn(database, BATCH)
    if not ids:
        return 0
    begun = 0
    with sql.transaction_on(database):
        locked = lock(database, ids, waits=False)
        # Asked again under the locks: another scheduler may have begun it meanwhile.
        still = set(turn.next_in_turn(database, BATCH))
        for due in locked:
            if due.id in still:
                begun += _begin(database, due, lease)
    return begun


def _begin(database: str, due: Due, lease: float) -> int:
    waiting = turn.waiting_longest(database, due.id)
    if waiting is None:
        return 0
    record, due_at = waiting
    try:
        job = begin_run(database, due, Verdict(due_at))
    except InvalidOption as refusal:
        events.schedule_broken(due.name, str(refusal))
        turn.refuse(database, record)
        return 0
    turn.begin(database, record, job, lease if job is None else None)
    if job is None:
        dispatch.after_commit(database, due.backend, record)
    return 1


def begin_run(
    database: str, due: Due, verdict: Verdict, *, run_after: timedelta | None = None
) -> UUID | None:
    """Enqueue the job of one run, in the caller's transaction; return it, None for a permit.

    Raises InvalidOption when what the schedule says is refused.
    """
    firing = Firing(due, Decision((verdict,), None), rule_of(due), policies_of(due))
    _enqueue(database, [firing], run_after=run_after)
    if firing.refused:
        raise InvalidOption(f"Schedule {due.name!r} cannot run: {firing.refused}")
    if firing.joined:
        raise InvalidOption(
            f"Schedule {due.name!r} cannot run: a job of the same name or key waits or runs."
        )
    return firing.jobs.get(verdict.due_at)
