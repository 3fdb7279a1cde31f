"""The statements of uniqueness: of one hash there is at most one job, whoever enqueues.

The unique index decides, and no error is ever raised by it: the INSERT gives way by itself, so a
transaction of the caller's goes on whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django_once.sql.statements import Statements
from django_once.sql.values import NewJob, Stored


@dataclass(frozen=True, slots=True)
class Namesake:
    """The job that has a hash now."""

    id: UUID
    status: str
    # Its window is over, if it has one.
    is_over: bool


class UniqueStatements:
    """The statements of unique jobs on one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements

    def namesakes(self, hashes: Sequence[str]) -> dict[str, Namesake]:
        """Return who has these hashes. A plain read: it waits for no body that holds a row."""
        sql = (
            "SELECT job.unique_hash, job.id, job.status, job.unique_until, "
            f"{self.statements.now} FROM once_job AS job "
            f"WHERE job.unique_hash IN ({self.statements.marks(hashes)})"
        )
        found = {}
        for name, id, status, until, now in self.statements.rows(sql, list(hashes)):
            moment = self.statements.moment
            is_over = until is not None and moment(until) <= moment(now)
            found[name] = Namesake(UUID(str(id)), status, is_over)
        return found

    def insert(self, job: NewJob) -> Stored | None:
        """Store a job unless another has its hash; None when one has."""
        statements = self.statements
        names, values, computed, parameters = statements.new_columns(job)
        sql = (
            f"INSERT INTO once_job (id, args, kwargs, {names}) VALUES (%s, %s, %s, {values}, "
            f"{computed}) {self.giving_way()}"
        )
        own = [statements.key(job.id), job.args, job.kwargs]
        statements.count(sql, [*own, *parameters])
        read = "SELECT enqueued_at, position FROM once_job WHERE id = %s AND unique_hash = %s"
        found = statements.rows(read, [statements.key(job.id), job.unique_hash])
        for enqueued_at, position in found:
            return Stored(statements.moment(enqueued_at), position is not None)
        return None

    def insert_many(
        self, job: NewJob, members: Sequence[tuple[UUID, str, str]],
        terms: Sequence[Mapping[str, Any]],
    ) -> None:  # fmt: skip
        """Store those of these jobs whose hash nobody has, in their order."""
        self.statements.insert_each(job, members, terms, self.giving_way())

    def giving_way(self) -> str:
        """SQL at the end of an INSERT that stores nothing where another has the hash."""
        if self.statements.vendor == "mysql":
            return "ON DUPLICATE KEY UPDATE fence = fence"
        return "ON CONFLICT (unique_hash) WHERE unique_hash IS NOT NULL DO NOTHING"

    def let_go(self, job: UUID, name: str) -> int:
        """Take the hash from a job whose window is over, if it has started or ended."""
        sql = (
            "UPDATE once_job SET unique_hash = NULL WHERE id = %s AND unique_hash = %s "
            f"AND unique_until <= {self.statements.now} AND (status IN ('SUCCESSFUL', 'FAILED') "
            "OR (status = 'RUNNING' AND unique_hash >= 's'))"
        )
        return self.statements.count(sql, [self.statements.key(job), name])

    def rewrite(self, there: UUID, job: NewJob) -> int:
        """Give a job that waits what this one would have had; count it."""
        statements = self.statements
        due, wish, due_parameters = statements.due(job.run_after)
        position = statements.position()
        if wish != "NULL":
            position = f"CASE WHEN {due} <= {statements.now} THEN {position} END"
        if job.gate is not None:
            position, due_parameters = "NULL", due_parameters[:2]
        sql = (
            "UPDATE once_job SET args = %s, kwargs = %s, priority = %s, queue = %s, gate = %s, "
            "rule = %s, limit_key = %s, fair_key = %s, blocked_by = '', gate_rank = NULL, "
            f"run_after = {wish}, due_at = {due}, position = {position} "
            "WHERE id = %s AND unique_hash = %s AND status = 'READY'"
        )
        said = [
            job.args, job.kwargs, job.priority, job.queue, job.gate, job.rule, job.limit_key,
            job.fair_key,
        ]  # fmt: skip
        guard = [statements.key(there), job.unique_hash]
        return statements.count(sql, [*said, *due_parameters, *guard])
