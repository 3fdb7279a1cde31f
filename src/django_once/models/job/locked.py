"""Jobs that wait for a lock: whoever releases it lets the one go that has waited longest.

A job that meets a held lock is stored as blocked by it, and only then asks the lock's row for a
word at the release. So either the release finds the job, or the job finds the lock free and is let
go at once. The one that was let go takes the lock and lets the next one go at its own release.

Race: what was let go never takes the lock (it was cancelled, its queue has no worker). So a keeper
looks, now and then, for locks that nobody holds and somebody waits for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django_once import sql
from django_once.sql.locked import LockedJobs
from django_once.sql.values import LOCK
from django_once.wakeups.listen import tell

MOST_LOCKS: Final = 200


def await_locks(database: str, reasons: Iterable[str]) -> int:
    """See to it that jobs which these reasons block are let go by a release; count the free."""
    jobs = LockedJobs(sql.on(database).connection)
    free = 0
    for name in sorted({one.removeprefix(LOCK) for one in reasons if one.startswith(LOCK)}):
        if not jobs.await_release(name):
            free += let_next_go(jobs.words.connection, name)
    return free


def let_next_go(connection: Any, name: str) -> int:
    """Let the job go that has waited longest for a lock which nobody holds; count it.

    Race: a job is stored as blocked while this looks. It asks for a word after that, so the mark is
    taken away before the look, and what was stored later sets it again.
    """
    jobs = LockedJobs(connection)
    jobs.remember(name, has_jobs=False)
    backend = jobs.let_one_go(name)
    if backend is None:
        return 0
    if jobs.is_waited_for(name):
        jobs.remember(name, has_jobs=True)
    tell(connection, backend)
    return 1


def let_go_overlooked(database: str, after: str = "") -> tuple[int, str]:
    """Let one job go for each free lock, some locks at a time: the net under the releases.

    Returns how many, and the name to go on after; "" when all were looked at.
    """
    connection = sql.on(database).connection
    free, last = LockedJobs(connection).free_with_jobs(after, MOST_LOCKS)
    return sum(let_next_go(connection, name) for name in free), last
