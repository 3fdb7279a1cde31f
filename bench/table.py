"""The table of jobs under measurement: filled, emptied, read; and what the server counted."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any, Final

from django.db import connection

from bench.errors import Refusal

EDGE: Final = 0.02
PATIENCE: Final = 120.0
TASKS: Final = "bench.project.work.tasks."


def empty(*, as_new: bool = False) -> None:
    """Remove every job; `as_new` forgets what the planner had learnt of the table, too."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("TRUNCATE once_job, once_bench_effect")
            if as_new:
                cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'once_job'::regclass")
        else:
            cursor.execute("DELETE FROM once_job")
            cursor.execute("DELETE FROM once_bench_effect")


def analyze() -> None:
    """Bring the planner's statistics up to date, as autovacuum would have."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE once_job")
            cursor.execute("CHECKPOINT")
        elif connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            cursor.execute("ANALYZE TABLE once_job")
            cursor.fetchall()


def rows(question: str, parameters: Any = ()) -> list[Any]:
    """Return what the database answers."""
    with connection.cursor() as cursor:
        cursor.execute(question, parameters)
        return list(cursor.fetchall())


def one(question: str, parameters: Any = ()) -> Any:
    """Return the one value that the database answers."""
    return rows(question, parameters)[0][0]


def last_job(task: str) -> Any:
    """Return the id of the job of a task that will be claimed last."""
    return one(
        "SELECT id FROM once_job WHERE task = %s ORDER BY priority, position DESC LIMIT 1",
        [TASKS + task],
    )


def wait_until_ended(task: str, last: Any, patience: float = PATIENCE) -> None:
    """Return when no job of a task is left, of which the last one is named.

    The measurement must not feel that it is watched: while there is much left, this looks at one
    row by its primary key.
    """
    until = time.monotonic() + patience
    left = "SELECT count(*) FROM once_job WHERE task = %s AND status IN ('READY', 'RUNNING')"
    while one("SELECT status FROM once_job WHERE id = %s", [last]) in ("READY", "RUNNING") or one(
        left, [TASKS + task]
    ):
        if time.monotonic() > until:
            open_jobs = one(left, [TASKS + task])
            raise Refusal(f"After {patience:.0f} s {open_jobs} jobs of {task} had not ended.")
        time.sleep(0.1)
    failed = one(
        "SELECT count(*) FROM once_job WHERE task = %s AND status <> 'SUCCESSFUL'", [TASKS + task]
    )
    if failed:
        raise Refusal(f"{failed} jobs of {task} failed.")


def wait_until_all_ended(task: str, patience: float = PATIENCE) -> None:
    """Return when no job of a task is left, whichever comes last; looks now and then."""
    until = time.monotonic() + patience
    left = "SELECT 1 FROM once_job WHERE task = %s AND status IN ('READY', 'RUNNING') LIMIT 1"
    while rows(left, [TASKS + task]):
        if time.monotonic() > until:
            raise Refusal(f"After {patience:.0f} s jobs of {task} had not ended.")
        time.sleep(0.25)


def per_second(task: str, edge: float = EDGE) -> float:
    """Return how many jobs of a task ended per second, without the first and the last of them."""
    ended = one(
        "SELECT count(*) FROM once_job WHERE task = %s AND finished_at IS NOT NULL", [TASKS + task]
    )
    at = "SELECT finished_at FROM once_job WHERE task = %s AND finished_at IS NOT NULL ORDER BY "
    first = one(at + "finished_at LIMIT 1 OFFSET %s", [TASKS + task, int(ended * edge)])
    last = one(at + "finished_at DESC LIMIT 1 OFFSET %s", [TASKS + task, int(ended * edge)])
    between = one(
        "SELECT count(*) FROM once_job WHERE task = %s AND finished_at > %s AND finished_at <= %s",
        [TASKS + task, first, last],
    )
    return float(between / max(_seconds_between(first, last), 1e-6))


def per_second_by_slices(task: str, slices: int) -> list[float]:
    """Return how many jobs of a task ended per second in each of so many equal parts of time."""
    moments = [
        _seconds(moment)
        for (moment,) in rows(
            "SELECT finished_at FROM once_job WHERE task = %s AND finished_at IS NOT NULL",
            [TASKS + task],
        )
    ]
    first, last = min(moments), max(moments)
    width = (last - first) / slices
    counts = [0] * slices
    for moment in moments:
        counts[min(slices - 1, int((moment - first) / width))] += 1
    return [count / width for count in counts]


def _seconds_between(first: Any, last: Any) -> float:
    return _seconds(last) - _seconds(first)


def _seconds(moment: Any) -> float:
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return float(found.timestamp())
