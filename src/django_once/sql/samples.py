"""What charts are drawn of: of each stretch of time the first jobs that ended in it, and no more.

A stretch with more jobs than that is judged by them: how soon the last of them ended tells how many
there were. So a chart costs the same, whether a thousand or a million jobs have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django_once import clock
from django_once.sql.statements import Statements
from django_once.sql.windows import STATES, last_error

MOST_IN_ONE: Final = 120
MOST_FAILURES: Final = 50_000
MOST_GROUPED: Final = 2_000
MOST_QUEUES: Final = 200
DEEPEST: Final = 60_000


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that ended: in which stretch, how far into it, and how long it had waited and run."""

    stretch: int
    at: float
    is_success: bool
    waited: float | None
    ran: float | None


@dataclass(frozen=True, slots=True)
class Depth:
    """How many jobs of a queue are ready, up to a bound, and since when the oldest could run."""

    backend: str
    queue: str
    jobs: int
    is_more: bool
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Failing:
    """Failures that are alike: of one task, for one reason, with one error."""

    backend: str
    task: str
    reason: str
    error: str
    jobs: int
    first: datetime | None
    last: datetime | None


def ended(statements: Statements, begin: datetime, length: timedelta, count: int) -> list[Ended]:
    """Return the first jobs that ended in each of so many stretches of this length."""
    seconds = _between(statements.vendor)
    parts, parameters = [], []
    for n in range(count):
        low, high = (clock.to_column(begin + length * m, statements.vendor) for m in (n, n + 1))
        parts.append(
            f"SELECT * FROM (SELECT {n} AS stretch, {seconds('finished_at', '%s')} AS place, "
            "status, "
            f"{seconds('started_at', 'coalesce(run_after, enqueued_at)')} AS waited, "
            f"{seconds('finished_at', 'last_attempted_at')} AS ran "
            "FROM once_job WHERE finished_at >= %s AND finished_at < %s "
            f"ORDER BY finished_at LIMIT {MOST_IN_ONE}) AS stretch_{n}"
        )
        parameters += [low, low, high]
    rows = statements.rows(" UNION ALL ".join(parts), parameters)
    return [
        Ended(int(n), float(at), status == "SUCCESSFUL", _number(waited), _number(ran))
        for n, at, status, waited, ran in rows
    ]


def failed(statements: Statements, begin: datetime, length: timedelta) -> dict[int, int]:
    """Return how many of the last failures came in each stretch behind a moment; up to a bound.

    Only the index is read, which holds no backend: these are of all in the database.
    """
    seconds = _between(statements.vendor)
    low = clock.to_column(begin, statements.vendor)
    stretch = _whole(
        statements.vendor, f"{seconds('finished_at', '%s')} / {length.total_seconds()}"
    )
    sql = (
        f"SELECT {stretch} AS stretch, count(*) FROM (SELECT finished_at FROM once_job "
        "WHERE status = 'FAILED' AND finished_at >= %s ORDER BY finished_at DESC "
        f"LIMIT {MOST_FAILURES}) AS part GROUP BY 1"
    )
    rows = statements.rows(sql, [low, low])
    return {int(stretch): int(jobs) for stretch, jobs in rows}


def queues_with_ready(statements: Statements, backend: str) -> list[str]:
    """Return the queues in which jobs are ready, by steps along the index."""
    sql = (
        "SELECT queue FROM once_job WHERE backend = %s AND status = 'READY' "
        "AND position IS NOT NULL AND queue > %s ORDER BY queue LIMIT 1"
    )
    found: list[str] = []
    while len(found) < MOST_QUEUES:
        rows = statements.rows_by_index(sql, [backend, found[-1] if found else ""])
        if not rows:
            break
        found.append(rows[0][0])
    return found


def depths(statements: Statements, backend: str) -> list[Depth]:
    """Return how deep each queue with ready jobs is, counted up to a bound that all share."""
    queues = queues_with_ready(statements, backend)
    most = max(1_000, DEEPEST // max(1, len(queues)))
    sql = (
        "SELECT count(*), min(due_at) FROM (SELECT due_at FROM once_job WHERE backend = %s "
        "AND queue = %s AND status = 'READY' AND position IS NOT NULL LIMIT %s) AS part"
    )
    found = []
    for queue in queues:
        ((jobs, oldest),) = statements.rows_by_index(sql, [backend, queue, most])
        moment = None if oldest is None else statements.moment(oldest)
        found.append(Depth(backend, queue, int(jobs), int(jobs) >= most, moment))
    return found


def rates(
    statements: Statements, backends: Sequence[str], within: float, most: int
) -> tuple[dict[tuple[str, str], int], float]:
    """Return how many of the last so many jobs ended of each queue, and in how many seconds."""
    seconds = _between(statements.vendor)
    since = statements.later(repr(-within))
    sql = (
        "SELECT backend, queue, count(*), max(past) FROM (SELECT backend, queue, "
        f"{seconds(statements.now, 'finished_at')} AS past FROM once_job "
        f"WHERE finished_at >= {since} AND backend IN ({statements.marks(backends)}) "
        "ORDER BY finished_at DESC LIMIT %s) AS part GROUP BY backend, queue"
    )
    rows = statements.rows_by_index(sql, [*backends, most])
    counts = {(backend, queue): int(jobs) for backend, queue, jobs, _ in rows}
    if sum(counts.values()) < most:
        return counts, within
    return counts, max(0.001, *(float(past) for *_, past in rows))


def failures(
    statements: Statements, backends: Sequence[str], hidden: Sequence[str]
) -> list[Failing]:
    """Return the last failures put together by task, reason and error, the most frequent first."""
    error = last_error(statements.vendor, "history")
    left_out = f"AND reason NOT IN ({statements.marks(hidden)}) " if hidden else ""
    sql = (
        "SELECT backend, task, reason, error, count(*) AS jobs, min(finished_at), max(finished_at) "
        f"FROM (SELECT backend, task, reason, {error} AS error, finished_at FROM once_job "
        "WHERE status = 'FAILED' AND finished_at IS NOT NULL "
        f"AND backend IN ({statements.marks(backends)}) {left_out}"
        f"ORDER BY finished_at DESC LIMIT {MOST_GROUPED}) AS part "
        "GROUP BY backend, task, reason, error ORDER BY jobs DESC, task"
    )
    return [
        Failing(backend, task, reason, error or "", int(jobs), _moment(statements, first),
                _moment(statements, last))
        for backend, task, reason, error, jobs, first, last in statements.rows(
            sql, [*backends, *hidden]
        )
    ]  # fmt: skip


def blocked_by(statements: Statements, backends: Sequence[str], most: int) -> dict[str, int]:
    """Return how many of up to so many blocked jobs each reason holds back."""
    sql = (
        "SELECT blocked_by, count(*) FROM (SELECT blocked_by FROM once_job WHERE status = 'READY' "
        f"AND blocked_by <> '' AND backend IN ({statements.marks(backends)}) LIMIT %s) AS part "
        "GROUP BY blocked_by"
    )
    rows = statements.rows_by_index(sql, [*backends, most])
    return {str(reason): int(jobs) for reason, jobs in rows}


def by_channel(statements: Statements, state: str, most: int) -> dict[str, int]:
    """Return how many of up to so many jobs in a state each channel has; the last, of failed."""
    order = "ORDER BY finished_at DESC" if state == "failed" else ""
    part = f"SELECT channel FROM once_job WHERE {STATES[state]} {order} LIMIT %s"
    sql = (
        f"SELECT channel, count(*) FROM ({part}) AS part WHERE channel IS NOT NULL GROUP BY channel"
    )
    return {str(name): int(jobs) for name, jobs in statements.rows(sql, [most])}


def _moment(statements: Statements, value: Any) -> datetime | None:
    return None if value is None else statements.moment(value)


def _number(value: Any) -> float | None:
    return None if value is None else max(0.0, float(value))


def _whole(vendor: str, number: str) -> str:
    """Return SQL of a number that is not negative, without its fraction."""
    return f"floor({number})" if vendor != "sqlite" else f"CAST({number} AS integer)"


def _between(vendor: str) -> Any:
    """Return what makes SQL of the seconds from the second moment to the first."""
    if vendor == "postgresql":
        return lambda later, earlier: f"extract(epoch FROM {later} - {earlier})::float8"
    if vendor == "sqlite":
        return lambda later, earlier: f"((julianday({later}) - julianday({earlier})) * 86400.0)"
    return lambda later, earlier: f"(timestampdiff(microsecond, {earlier}, {later}) / 1000000e0)"
