"""Runs that a person asks for: one now, or those of moments that passed without one.

A backfill walks the rule that holds now. A moment that ran, or is about to, is left alone; one
that was skipped runs after all. Moments below the schedule's evidence are refused: their records
were deleted, and nobody can say any more whether they ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from uuid import UUID, uuid4

from django_once import clock, sql
from django_once.definitions.schedule import Verdict
from django_once.errors import InvalidOption
from django_once.models.execution.look import has_run
from django_once.models.execution.turn import revive
from django_once.models.schedule import edit
from django_once.models.schedule.due import Due
from django_once.models.schedule.move import AlreadyFired, record
from django_once.scheduling import dispatch, readings
from django_once.scheduling.editing import locked
from django_once.scheduling.firing import begin_run
from django_once.sql.schedules import Record

MOST: Final = 100_000
BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill did or would do: the moments that run, and how many ran before."""

    moments: tuple[datetime, ...]
    ran_before: int


def _nobody(count: int) -> None:
    """Tell nobody."""


def run_now(database: str, schedule: UUID) -> UUID:
    """Run a schedule's task once, now, whatever its rule and its pause say; return the record.

    It is recorded as a person's, and the next due moment stays.
    """
    while True:
        try:
            with sql.transaction_on(database):
                due, now = locked(database, schedule)
                (id,) = _begin(database, due, [now], "manual", None)
                edit.count_run(database, schedule, now)
                return id
        except AlreadyFired:
            # Another was recorded in the same microsecond: it is later now.
            continue


def backfill(
    database: str, schedule: UUID, begin: datetime, end: datetime, *,
    dry_run: bool = False, per_minute: float | None = None,
    looked_at: Callable[[int], None] = _nobody,
) -> Backfill:  # fmt: skip
    """Run the moments from one instant until before another that have no run; return them.

    `per_minute` spreads the runs from now on, so that a backfill leaves room for others. Whoever
    shows how far it is gets told of every batch that is behind.
    """
    begin, end = clock.to_utc(begin), clock.to_utc(end)
    if per_minute is not None and not (math.isfinite(per_minute) and per_minute > 0):
        raise InvalidOption(f"A backfill's rate must be above zero, got {per_minute!r}.")
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        evidence = edit.evidence_of(database, schedule)
    _refuse_period(due, begin, end, now, evidence)
    rule = readings.rule_of(due)
    moments = [one for one in islice(rule.between(_before(begin), end), MOST) if one < end]
    ran = has_run(database, schedule, moments)
    missing = [one for one in moments if one not in ran]
    if not dry_run:
        missing = _run_missing(database, schedule, missing, per_minute, looked_at)
    return Backfill(tuple(missing), len(moments) - len(missing))


def _refuse_period(
    due: Due, begin: datetime, end: datetime, now: datetime, evidence: datetime | None
) -> None:
    if end <= begin:
        raise InvalidOption(f"A backfill ends after it begins, got {begin} to {end}.")
    reached = due.watermark or due.rule_since
    if end > now or (due.next_due_at is not None and end > max(due.next_due_at, reached)):
        raise InvalidOption(
            f"A backfill reaches until {min(now, due.next_due_at or now)} at most, got {end}: what "
            "comes later is the scheduler's."
        )
    if evidence is not None and begin <= evidence:
        raise InvalidOption(
            f"The records of {due.name!r} were deleted up to {evidence}, so nobody can say what "
            f"ran before: begin after it, got {begin}."
        )


def _run_missing(
    database: str, schedule: UUID, missing: Sequence[datetime], per_minute: float | None,
    looked_at: Callable[[int], None],
) -> list[datetime]:  # fmt: skip
    """Begin these runs in short transactions; leave out those that somebody began meanwhile."""
    begun: list[datetime] = []
    for start in range(0, len(missing), BATCH):
        batch = list(missing[start : start + BATCH])
        with sql.transaction_on(database):
            due, _ = locked(database, schedule)
            ran = has_run(database, schedule, batch)
            free = [one for one in batch if one not in ran]
            _begin(database, due, free, "backfill", per_minute, len(begun))
            begun += free
        looked_at(len(batch))
    return begun


def _begin(
    database: str, due: Due, moments: Sequence[datetime], kind: str, per_minute: float | None,
    before: int = 0,
) -> list[UUID]:  # fmt: skip
    """Record these moments as runs and begin them; a skipped one is taken up again."""
    ids = []
    for n, moment in enumerate(moments, before):
        wait = timedelta(minutes=n / per_minute) if per_minute else None
        job = begin_run(database, due, Verdict(moment), run_after=wait)
        lease = None if job is not None else dispatch.LEASE
        id = revive(database, due.id, moment, job, lease)
        if id is None:
            id = uuid4()
            record(
                database,
                [Record(id=id, schedule=due.id, due_at=moment, kind=kind, job=job, lease=lease,
                        retention=due.retention)],
            )  # fmt: skip
        if job is None:
            dispatch.after_commit(database, due.backend, id)
        ids.append(id)
    return ids


def _before(moment: datetime) -> datetime:
    return moment - timedelta(microseconds=1)
