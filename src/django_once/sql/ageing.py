"""The statements of ageing: what has stood in a lane for long goes on to the end of a higher one.

A lane is walked in the order of its places, and whoever has stood longest stands first. So those
who are old are found by one short step into the ready index for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_once.sql.statements import Statements
from django_once.sql.values import Lane


def lock_old(
    statements: Statements, backend: str, lane: Lane, seconds: float, most: int
) -> list[Any]:
    """Lock and return up to so many who have stood in this lane for so long, the oldest first.

    Not those of a share, whose place is not a time.
    """
    sql = f"""
        SELECT job.id FROM once_job AS job {_hint(statements)}
        WHERE job.backend = %s AND job.queue = %s AND job.priority = %s AND job.status = 'READY'
        AND job.position IS NOT NULL AND job.position < {statements.position()} - %s
        AND job.due_at < {statements.later(repr(-float(seconds)))} AND job.fair_key IS NULL
        ORDER BY job.position LIMIT %s {statements.LOCK_FREE}"""
    microseconds = int(seconds * 1_000_000)
    where = [backend, lane.queue, lane.priority, microseconds, most]
    return [job for (job,) in statements.rows(sql, where)]


def lift(statements: Statements, jobs: Sequence[Any], priority: int) -> int:
    """Put these at the end of the lane of a priority, in their order; count them."""
    order = " ".join(f"WHEN %s THEN {n}" for n in range(len(jobs)))
    place = statements.position(f"CASE job.id {order} END", len(jobs))
    sql = (
        f"UPDATE once_job AS job SET priority = %s, position = {place} "
        f"WHERE job.id IN ({statements.marks(jobs)}) AND job.status = 'READY' "
        "AND job.position IS NOT NULL"
    )
    return statements.count(sql, [priority, *jobs, *jobs])


def _hint(statements: Statements) -> str:
    if statements.vendor == "postgresql":
        return ""
    mysql = statements.vendor == "mysql"
    return f"{'FORCE INDEX (' if mysql else 'INDEXED BY '}once_job_ready{')' if mysql else ''}"
