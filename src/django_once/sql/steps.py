"""The statements of what a body has behind it; each is guarded by the claim of its attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_once.sql.statements import Statements
from django_once.sql.values import Told
from django_once.sql.words import write_json

TOLD: Final = {
    "job_id": "uuid", "nonce": "uuid", "done": "real", "total": "real", "message": "text",
}  # fmt: skip
# An exactly_once body has written its success already, and not its end.
IS_HELD: Final = "job.finished_at IS NULL"


class Steps:
    """The statements of steps and progress on one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements

    def take(self, job: UUID, claim: UUID, name: str, value: str) -> bool:
        """Store a step of a job that is held under this claim; False when it is not."""
        sql = (
            "INSERT INTO once_step (job, name, value, taken_at) "
            f"SELECT job.id, %s, %s, {self.statements.now} FROM once_job AS job "
            f"WHERE job.id = %s AND job.claim = %s AND {IS_HELD}"
        )
        own = [self.statements.key(job), self.statements.key(claim)]
        return self.statements.count(sql, [name, value, *own]) == 1

    def tell(self, told: Sequence[Told]) -> int:
        """Store how far these attempts are, or have come, unless another has begun; count them."""
        statements = self.statements
        columns = ("done", "total", "message", "updated_at")
        if statements.vendor == "mysql":
            changes = ", ".join(f"{name} = VALUES({name})" for name in columns)
            merge = f"ON DUPLICATE KEY UPDATE {changes}"
        else:
            changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
            merge = f"ON CONFLICT (job) DO UPDATE SET {changes}"
        sql = (
            f"INSERT INTO once_progress (job, {', '.join(columns)}) "
            f"SELECT job.id, o.done, o.total, o.message, {statements.now} "
            f"FROM {statements.unpacked(TOLD)} JOIN once_job AS job ON job.id = o.job_id "
            f"WHERE job.claim = o.nonce {merge}"
        )
        return statements.count(sql, [self._batch(told)])

    def forget(self, jobs: Sequence[UUID]) -> None:
        """Delete what these jobs have left, which are deleted themselves."""
        these = list(map(self.statements.key, jobs))
        for table in ("once_step", "once_progress"):
            marks = self.statements.marks(these)
            self.statements.count(f"DELETE FROM {table} WHERE job IN ({marks})", these)

    def _batch(self, told: Sequence[Told]) -> str:
        key = self.statements.key
        members = (
            {
                "job_id": str(key(one.job)), "nonce": str(key(one.claim)), "done": one.done,
                "message": one.message, **({} if one.total is None else {"total": one.total}),
            }
            for one in sorted(told, key=lambda one: one.job)
        )  # fmt: skip
        return write_json(list(members))
