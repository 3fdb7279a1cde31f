"""Questions about one job: which conditions of the claim hold of it, and what stands in its way.

Each is bounded: a person who asks why a job waits must not wait for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django_once.sql.gates import HOLDS, reason_of
from django_once.sql.predicates import PREDICATES
from django_once.sql.statements import Statements

MOST_COUNTED: Final = 10_000
MOST_SHOWN: Final = 10
SINCE: Final = timedelta(minutes=1)


class Explaining:
    """The questions about the jobs of one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.key = statements.connection.ops.quote_name("key")

    def conditions(self, job: UUID) -> dict[str, bool]:
        """Return for each condition of the claim whether it holds of this job now."""
        words = {
            "now": self.statements.now, "key": self.key, "queue": "job.queue",
            "backend": "job.backend",
        }  # fmt: skip
        asked = ", ".join(
            f"CASE WHEN {predicate.holds.format(**words)} THEN 1 ELSE 0 END"
            for predicate in PREDICATES
        )
        sql = f"SELECT {asked} FROM once_job AS job WHERE job.id = %s"
        ((*held,),) = self.statements.rows(sql, [self.statements.key(job)])
        names = [predicate.name for predicate in PREDICATES]
        return {name: bool(one) for name, one in zip(names, held, strict=True)}

    def ready_before(self, backend: str, queue: str, priority: int, position: int) -> int:
        """Count the ready jobs of this queue that come before this place, up to a bound."""
        same = (
            "SELECT 1 FROM once_job WHERE backend = %s AND queue = %s AND priority = %s "
            "AND status = 'READY' AND position IS NOT NULL AND position < %s"
        )
        above = (
            "SELECT 1 FROM once_job WHERE backend = %s AND queue = %s AND priority > %s "
            "AND status = 'READY' AND position IS NOT NULL"
        )
        return self._count(same, [backend, queue, priority, position]) + self._count(
            above, [backend, queue, priority]
        )

    def waiting_before(self, backend: str, gate: str, rank: int) -> int:
        """Count those who wait at a gate before this rank, up to a bound."""
        sql = (
            "SELECT 1 FROM once_job AS job WHERE job.backend = %s AND job.gate = %s "
            "AND job.blocked_by = %s AND job.finished_at IS NULL AND job.gate_rank < %s"
        )
        return self._count(sql, [backend, gate, reason_of(gate), rank])

    def holders(self, backend: str, gate: str) -> list[UUID]:
        """Return the first of those who hold a slot of a gate."""
        sql = (
            "SELECT job.id FROM once_job AS job WHERE job.backend = %s AND job.gate = %s "
            f"AND {HOLDS} ORDER BY job.gate_rank LIMIT %s"
        )
        rows = self.statements.rows(sql, [backend, gate, MOST_SHOWN])
        return [UUID(str(id)) for (id,) in rows]

    def ended_lately(self, backend: str, queue: str) -> int:
        """Count the jobs of a queue that ended within the last minute, up to a bound."""
        since = self.statements.later(repr(-SINCE.total_seconds()))
        sql = f"SELECT 1 FROM once_job WHERE finished_at >= {since} AND backend = %s AND queue = %s"
        return self._count(sql, [backend, queue])

    def _count(self, sql: str, parameters: Sequence[Any]) -> int:
        counted = f"SELECT count(*) FROM ({sql} LIMIT {MOST_COUNTED}) AS part"
        ((count,),) = self.statements.rows_by_index(counted, parameters)
        return int(count)
