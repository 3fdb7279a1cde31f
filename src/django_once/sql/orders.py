"""The statements of order: of the jobs under one order key, one at a time, first come first.

The order is that in which writers took the key's series row, whose generation counts them. Whoever
stores a job under a key holds that row until its transaction ends; a job that finds an unfinished
one before it waits, blocked by its predecessor.

Whoever ends a job lets the next one go: the unfinished job of the lowest generation is the head,
and if it is blocked, it is blocked no more. That is done under the series row, so no writer is
between its look and its commit. A row that a writer holds is passed over and asked for again, so
nobody who ends attempts waits for somebody's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django_once.sql.series import SeriesStatements
from django_once.sql.statements import Statements
from django_once.sql.values import PREDECESSOR

OPEN: Final = "job.order_key = %s AND job.finished_at IS NULL AND job.backend = %s"
# A row has so much room for a key; a part of it is for the order, the rest for whose it is.
LONGEST_KEY: Final = 255
LONGEST_ORDER: Final = 120


def order_begin(path: str) -> str:
    """Return how the keys of one task's orders begin."""
    return f"once:{path[-(LONGEST_KEY - LONGEST_ORDER - 6) :]}:"


def order_key(path: str, order: str) -> str:
    """Return what the jobs of one task and one order have in common."""
    # Where two orders become one here, they wait for each other, and nothing worse.
    return order_begin(path) + order[:LONGEST_ORDER]


class Orders:
    """The statements of order on one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.series = SeriesStatements(statements)

    def draw(self, backend: str, key: str) -> tuple[int, bool]:
        """Take the next place under a key until the transaction ends; say if somebody is before."""
        stand = self.series.lock(backend, key)
        count = "UPDATE once_series SET generation = generation + 1 WHERE id = %s"
        self.statements.count(count, [self.statements.key(stand.id)])
        is_open = f"SELECT 1 FROM once_job AS job WHERE {OPEN} LIMIT 1"
        return stand.generation + 1, bool(self.statements.rows(is_open, [key, backend]))

    def admit(self, backend: str, keys: Sequence[str]) -> tuple[int, set[str]]:
        """Let the heads of these keys go; return how many, and the keys that a writer holds."""
        free = {stand.key for stand in self.series.lock_free(backend, keys)}
        admitted = sum(self._admit_head(backend, key) for key in sorted(free))
        return admitted, set(keys) - free

    def _admit_head(self, backend: str, key: str) -> int:
        statements = self.statements
        head = (
            f"SELECT job.id, job.blocked_by FROM once_job AS job WHERE {OPEN} "
            "ORDER BY job.generation LIMIT 1"
        )
        found: list[Any] = statements.rows(head, [key, backend])
        if not found or found[0][1] != PREDECESSOR:
            return 0
        go = (
            f"UPDATE once_job SET blocked_by = '', position = {statements.position()} "
            f"WHERE id = %s AND blocked_by = '{PREDECESSOR}' AND status = 'READY'"
        )
        return statements.count(go, [found[0][0]])

    def waiting(self, backend: str, most: int) -> list[str]:
        """Return keys under which everything waits, for nobody."""
        sql = (
            "SELECT DISTINCT job.order_key FROM once_job AS job WHERE job.status = 'READY' "
            f"AND job.blocked_by <> '' AND job.blocked_by = '{PREDECESSOR}' AND job.backend = %s "
            "AND job.order_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM once_job AS before_it "
            "WHERE before_it.order_key = job.order_key AND before_it.finished_at IS NULL "
            "AND before_it.backend = job.backend AND before_it.blocked_by <> "
            f"'{PREDECESSOR}') LIMIT %s"
        )
        return [key for (key,) in self.statements.rows(sql, [backend, most])]
