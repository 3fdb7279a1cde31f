"""The breaker: closed, open, or asking by one trial whether it may close.

While it is open its jobs are claimed and put aside, blocked. The first that is met becomes its
trial: it comes back by itself at the moment when the breaker may close again, as the only one that
runs then. If it succeeds, the breaker closes, and all go on; if it fails, the breaker stays open
for another while, and one of those who wait is let go to be the next trial.

A trial that was cancelled, or lost for ever, tells nobody. So whoever sweeps looks for breakers
whose time has come and whose trial neither waits nor runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django_once import payload
from django_once.clock import Now
from django_once.models.job.ready import admit_placed, let_go, let_some_go
from django_once.models.job.row import Job
from django_once.models.tally.count import counted, sums, under_lock, written
from django_once.models.tally.row import Tally
from django_once.sql.stops import CLOSED, OF_BREAKER
from django_once.sql.values import BREAKER

OPENED: Final = "opened"
REOPENED: Final = "reopened"
ENDED: Final = "closed"
NOTHING: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a breaker opens, and how long it stays open; times are seconds."""

    failures: int
    within: float
    reopen: float
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What became of a breaker when ends were counted, and how many failures it knows of."""

    change: str
    failures: int
    is_open: bool


def count(database: str, backend: str, task: str, rule: Rule, ends: Mapping[UUID, bool]) -> Counted:
    """Count these ends, each a success or not; open or close the breaker when that is due."""

    def change(tally: Tally, now: datetime) -> Counted:
        if tally.opened_at is not None:
            return _after_trial(tally, now, rule, ends)
        failed = sum(not is_success for is_success in ends.values())
        counts = counted(payload.decode(tally.counts), now, rule.within, len(ends), failed)
        attempts, failures = sums(counts)
        tally.counts = written(counts)
        is_enough = rule.share is None or failures >= rule.share * attempts
        if not failed or failures < rule.failures or not is_enough:
            return Counted(NOTHING, failures, is_open=False)
        tally.opened_at, tally.reopens_at = now, now + timedelta(seconds=rule.reopen)
        tally.trial = None
        return Counted(OPENED, failures, is_open=True)

    found = under_lock(database, backend, Tally.BREAKER, task, change)
    if found.change == ENDED:
        let_go_unbroken(database)
    elif found.change == REOPENED:
        let_one_go(database, backend, task)
    return found


def trial_of(
    database: str, backend: str, task: str, jobs: Sequence[UUID]
) -> tuple[UUID | None, float]:
    """Return which of these claimed jobs may be tried, and in how many seconds.

    None of them when another is the trial. All may run when the breaker has closed meanwhile, of
    which the time below zero tells.
    """

    def change(tally: Tally, now: datetime) -> tuple[UUID | None, float]:
        if tally.opened_at is None or tally.reopens_at is None:
            return None, -1.0
        seconds = max(0.0, (tally.reopens_at - now).total_seconds())
        if tally.trial is None or (tally.trial not in jobs and not _is_open(database, tally.trial)):
            tally.trial = jobs[0]
        return (tally.trial if tally.trial in jobs else None), seconds

    return under_lock(database, backend, Tally.BREAKER, task, change)


def close(database: str, backend: str, task: str) -> bool:
    """Close a breaker by a person's will; False when it was not open."""

    def change(tally: Tally, _: datetime) -> bool:
        was_open = tally.opened_at is not None
        _close(tally)
        return was_open

    is_known = Tally.objects.using(database).filter(
        backend=backend, kind=Tally.BREAKER, task=task, opened_at__isnull=False
    )
    was_open = is_known.exists() and under_lock(database, backend, Tally.BREAKER, task, change)
    if was_open:
        let_go_unbroken(database)
    return was_open


def let_go_unbroken(database: str) -> int:
    """Give a place to every job that waits for a breaker which is closed now; count them."""
    return let_go(database, BREAKER, CLOSED)


def let_one_go(database: str, backend: str, task: str) -> int:
    """Let one of those who wait for an open breaker be met, to be its trial; count it."""
    placed = let_some_go(database, OF_BREAKER, [backend, task], 1)
    admit_placed(database, placed)
    return len(placed)


def look_after_breakers(database: str) -> int:
    """Let another be the trial where the last one is gone; return how many were let go."""
    overdue = Tally.objects.using(database).filter(
        kind=Tally.BREAKER, opened_at__isnull=False, reopens_at__lte=Now()
    )
    gone = 0
    for tally in overdue:
        if tally.trial is None or not _is_open(database, tally.trial):
            gone += let_one_go(database, tally.backend, tally.task)
    return gone


def open_breakers(database: str, backends: Sequence[str]) -> list[Tally]:
    """Return the breakers that are open, the longest first."""
    found = Tally.objects.using(database).filter(
        backend__in=backends, kind=Tally.BREAKER, opened_at__isnull=False
    )
    return list(found.order_by("opened_at", "task"))


def _after_trial(tally: Tally, now: datetime, rule: Rule, ends: Mapping[UUID, bool]) -> Counted:
    """Return what the end of the trial came to; what else ended had begun before."""
    if tally.trial is None or tally.trial not in ends:
        return Counted(NOTHING, rule.failures, is_open=True)
    if ends[tally.trial]:
        _close(tally)
        return Counted(ENDED, 0, is_open=False)
    tally.reopens_at, tally.trial = now + timedelta(seconds=rule.reopen), None
    return Counted(REOPENED, rule.failures, is_open=True)


def _close(tally: Tally) -> None:
    tally.opened_at = tally.reopens_at = tally.trial = None
    tally.counts = "[]"


def _is_open(database: str, job: UUID) -> bool:
    waiting = Job.objects.using(database).filter(pk=job, status__in=(Job.READY, Job.RUNNING))
    return waiting.exists()
