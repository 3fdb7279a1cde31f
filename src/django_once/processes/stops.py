"""What stands against jobs that were claimed all the same: a pause, a strike, an open breaker.

A claim tells with each row that something stands against its task; here it is read what. Most
jobs meet nothing of the kind, so this is asked for few.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_once import calls
from django_once.backend import DatabaseBackend
from django_once.errors import Cancelled
from django_once.models.strike import Strike
from django_once.models.strike.stop import covers, strikes
from django_once.models.tally.breaker import open_breakers, trial_of
from django_once.processes import ends
from django_once.processes.ends import Ended
from django_once.sql.values import BREAKER, CANCELLED, PAUSED, STRUCK, Attempt


def judged(
    backend: DatabaseBackend, attempts: Sequence[Attempt]
) -> tuple[list[Attempt], list[Ended]]:
    """Return which of these may start all the same, and the ends of the others."""
    ended = [ends.paused(attempt) for attempt in attempts if attempt.stopped_by == PAUSED]
    left = [attempt for attempt in attempts if attempt.stopped_by != PAUSED]
    free: list[Attempt] = []
    if not left:
        return free, ended
    database, tasks = backend.settings.database, {attempt.task for attempt in left}
    struck = strikes(database, [backend.alias], tasks)
    broken = {one.task for one in open_breakers(database, [backend.alias])} & tasks
    by_task: dict[str, list[Attempt]] = {}
    for attempt in left:
        strike = _struck(attempt, [one for one in struck if one.task == attempt.task])
        if strike is not None:
            ended.append(_put_aside(attempt, strike))
        elif attempt.task in broken:
            by_task.setdefault(attempt.task, []).append(attempt)
        else:
            free.append(attempt)
    for task, waiting in by_task.items():
        runs, stopped = _tried(backend, task, waiting)
        free += runs
        ended += stopped
    return free, ended


def _struck(attempt: Attempt, struck: Sequence[Strike]) -> Strike | None:
    if not struck:
        return None
    # Arguments that do not fit name nothing, but a strike of the whole task covers them.
    arguments = calls.of_row(attempt.task, attempt.args, attempt.kwargs) or {}
    return next((one for one in struck if covers(one, arguments)), None)


def _put_aside(attempt: Attempt, strike: Strike) -> Ended:
    if strike.outcome == Strike.CANCEL:
        by = f" by {strike.struck_by}" if strike.struck_by else ""
        why = f": {strike.reason}" if strike.reason else ""
        error = Cancelled(f"Jobs of {strike.task} with {strike.arguments} were struck{by}{why}.")
        return ends.over(attempt, CANCELLED, error)
    return ends.stopped(attempt, STRUCK, reason=strike.pk)


def _tried(
    backend: DatabaseBackend, task: str, attempts: Sequence[Attempt]
) -> tuple[list[Attempt], list[Ended]]:
    """Return what an open breaker lets through: its trial, when the time has come."""
    ids = [attempt.id for attempt in attempts]
    trial, seconds = trial_of(backend.settings.database, backend.alias, task, ids)
    if seconds < 0:
        return list(attempts), []
    free = [attempt for attempt in attempts if attempt.id == trial and not seconds]
    ended = [
        ends.stopped(attempt, "", reason=BREAKER, delay=seconds)
        if attempt.id == trial
        else ends.stopped(attempt, BREAKER)
        for attempt in attempts
        if attempt not in free
    ]
    return free, ended
