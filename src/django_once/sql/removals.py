"""The end of a job of which nothing is to be kept: its success takes its row away.

It is guarded as any end is: the row goes only from under the claim that began the attempt. Whoever
asks later what became of it finds no row, and only what has ended is ever deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from django_once.sql.endings import IS_RUNNING
from django_once.sql.repeat import has_ended_transaction
from django_once.sql.statements import Statements
from django_once.sql.values import Outcome
from django_once.sql.words import write_json

COLUMNS: Final = {"job_id": "uuid", "nonce": "uuid"}
# The success of an exactly_once body, which stands in its transaction already.
BEGUN: Final = "id = %s AND claim = %s AND status = 'SUCCESSFUL' AND finished_at IS NULL"


class Removals:
    """The statements that end jobs by taking them away, on one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements

    def remove(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """End these attempts well; return the ids of those that were still held."""
        statements = self.statements
        batch = write_json(
            [
                {"job_id": str(statements.key(one.id)), "nonce": str(statements.key(one.claim))}
                for one in sorted(outcomes, key=lambda one: one.id.int)
            ]
        )
        unpacked = statements.unpacked(COLUMNS)
        held = f"job.id = o.job_id AND job.claim = o.nonce AND {IS_RUNNING}"
        if statements.vendor == "postgresql":
            sql = f"DELETE FROM once_job AS job USING {unpacked} WHERE {held} RETURNING job.id"
            return {UUID(str(job)) for (job,) in statements.rows_by_index(sql, [batch])}
        if statements.vendor == "sqlite":
            sql = (
                "DELETE FROM once_job WHERE id IN "
                f"(SELECT job.id FROM {unpacked} CROSS JOIN once_job AS job WHERE {held}) "
                "AND status = 'RUNNING' RETURNING id"
            )
            return {UUID(str(job)) for (job,) in statements.rows(sql, [batch])}
        return self._removed_in_two(unpacked, batch)

    def _removed_in_two(self, unpacked: str, batch: str) -> set[UUID]:
        locked = (
            f"SELECT job.id FROM {unpacked} STRAIGHT_JOIN once_job AS job ON job.id = o.job_id "
            "WHERE job.claim = o.nonce AND job.status = 'RUNNING' FOR UPDATE"
        )
        with self.statements.together():
            found = [job for (job,) in self.statements.rows(locked, [batch])]
            if found:
                these = self.statements.marks(found)
                delete = f"{self.statements.DELETE_BY_KEY} WHERE id IN ({these})"
                self.statements.count(f"{delete} AND status = 'RUNNING'", found)
        return {UUID(str(job)) for job in found}

    def verify(self, job: UUID, claim: UUID, mark: str) -> bool:
        """Do what `verify_success` does for a job of which nothing is kept."""
        statements = self.statements
        own = [statements.key(job), statements.key(claim)]
        delete = f"{statements.DELETE_BY_KEY} WHERE {BEGUN}"
        try:
            if statements.vendor == "postgresql":
                guarded = f"{delete} AND pg_current_xact_id()::text = %s"
                return statements.count(guarded, [*own, mark]) == 1
            statements.count(f"RELEASE SAVEPOINT {mark}")
        except DatabaseError as error:
            if not has_ended_transaction(error):
                raise
            return False
        return statements.count(delete, own) == 1

    def kept_long_enough(self, backend: str, most: int) -> list[UUID]:
        """Lock and return up to so many successes whose own time to be kept is over."""
        over = f"job.finished_at < {self.statements.later('-job.kept_for')}"
        sql = (
            "SELECT job.id FROM once_job AS job WHERE job.backend = %s "
            "AND job.kept_for IS NOT NULL AND job.finished_at IS NOT NULL "
            f"AND job.status = 'SUCCESSFUL' AND {over} "
            f"ORDER BY job.finished_at LIMIT %s {self.statements.LOCK_FREE}"
        )
        return [UUID(str(job)) for (job,) in self.statements.rows(sql, [backend, most])]
