"""What the server counted of the workers: statements and transactions, without the bench's own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError, connection

from bench import table

# A backend tells the server's counters at most once a second.
UNTOLD: Final = 1.2


@dataclass(frozen=True, slots=True)
class Count:
    """How many statements and transactions there were in how many seconds."""

    statements: float
    transactions: float
    at: float

    def since(self, other: Count) -> Count:
        """Return what came between; `at` becomes the length of that time."""
        return Count(
            self.statements - other.statements,
            self.transactions - other.transactions,
            self.at - other.at,
        )


def of_others() -> Count:
    """Return what the workers' connections have sent so far.

    The bench's own statements are left out by their texts, its questions here cancel out over a
    second look but for one transaction or two. Statements are 0 where the server does not count.
    """
    time.sleep(UNTOLD)
    statements = 0.0
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        statements = float(
            table.one(
                "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements AS s "
                "JOIN pg_database AS d ON d.oid = s.dbid WHERE d.datname = current_database() "
                "AND query NOT ILIKE 'INSERT INTO once_job%%' AND query NOT ILIKE '%%pg_notify%%' "
                "AND query NOT ILIKE '%%pg_stat_%%' AND query NOT ILIKE 'BEGIN%%' "
                "AND query NOT ILIKE 'COMMIT%%' AND query NOT ILIKE 'SET LOCAL%%'"
            )
        )
    except DatabaseError:
        connection.close()
    transactions = table.one(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database "
        "WHERE datname = current_database()"
    )
    return Count(statements, float(transactions), time.monotonic())
