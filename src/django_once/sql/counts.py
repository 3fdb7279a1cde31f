"""Questions of people that the ORM asks too slowly: how many jobs stand where, and when it is now.

A count stops at a limit, since a million rows that wait must not make a status page wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django_once.sql.statements import Statements

# Written as the partial indexes are, so that the planner finds them.
UNENDED: Final = {
    "ready": "status = 'READY' AND position IS NOT NULL",
    "scheduled": "status = 'READY' AND position IS NULL AND blocked_by = ''",
    "blocked": "status = 'READY' AND blocked_by <> ''",
    "running": "status = 'RUNNING'",
}


def moment_from_now(statements: Statements, seconds: float = 0.0) -> datetime:
    """Return the database's now, or a moment so many seconds after it."""
    ((moment,),) = statements.rows(f"SELECT {statements.later(repr(float(seconds)))}")
    return statements.moment(moment)


def by_queue(
    statements: Statements, state: str, backends: Sequence[str], most: int
) -> list[tuple[str, int, datetime | None]]:
    """Return queue, number and longest due moment of up to so many jobs in this state."""
    sql = (
        "SELECT queue, count(*), min(due_at) FROM (SELECT queue, due_at FROM once_job "
        f"WHERE backend IN ({statements.marks(backends)}) AND {UNENDED[state]} LIMIT %s) AS part "
        "GROUP BY queue"
    )
    rows = statements.rows_by_index(sql, [*backends, most])
    return [(queue, int(jobs), statements.moment(due_at)) for queue, jobs, due_at in rows]


def ended_within(
    statements: Statements, seconds: float, backends: Sequence[str], most: int
) -> dict[str, int]:
    """Return how many of up to so many jobs ended within this time, by status."""
    since = statements.later(repr(-float(seconds)))
    sql = (
        "SELECT status, count(*) FROM (SELECT status FROM once_job "
        f"WHERE finished_at >= {since} AND backend IN ({statements.marks(backends)}) "
        "LIMIT %s) AS part GROUP BY status"
    )
    rows: list[Any] = statements.rows_by_index(sql, [*backends, most])
    return {status: int(jobs) for status, jobs in rows}
