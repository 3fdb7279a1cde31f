"""What a statement does to its session: nothing that lasts, or something to be rid of.

Told from the text alone, and in doubt against the statement: what only reads or writes rows leaves
a session as it was; of any other it is assumed that it did not.
"""

from __future__ import annotations

from typing import Any, Final

# The first words of statements after which a session is as it was before.
HARMLESS: Final = frozenset(
    {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "MERGE", "REPLACE", "EXPLAIN",
     "SAVEPOINT", "RELEASE", "ROLLBACK"}
)  # fmt: skip
# Settings that end with their transaction, and two that are ours and taken back.
PASSING: Final = (
    "SET LOCAL", "SET TRANSACTION", "SET CONSTRAINTS",
    "SET SESSION IDLE_TRANSACTION_TIMEOUT", "SET SESSION WAIT_TIMEOUT",
)  # fmt: skip
# Functions that change their session from inside a SELECT.
LASTING: Final = ("set_config", "pg_advisory_lock", "pg_try_advisory_lock", "get_lock(")
# These are ours, and end with their transaction.
OURS: Final = (
    "set_config('idle_in_transaction_session_timeout'",
    "set_config('synchronous_commit', 'off', true), pg_notify(",
)


def changes_session(sql: Any, vendor: str) -> bool:
    """Return whether a session may be another one after this statement."""
    if not isinstance(sql, str):
        # What the driver composes is not looked into.
        return True
    if ";" in sql:
        return any(changes_session(part, vendor) for part in sql.split(";") if part.strip())
    if sql.startswith("/*"):
        sql = sql.partition("*/")[2]
    begin = sql[:80].lstrip("( \n\t").upper()
    first = begin.split(None, 1)[0] if begin else ""
    if first not in HARMLESS:
        if vendor == "sqlite" and first == "BEGIN":
            return False
        return not begin.startswith(PASSING)
    lower = sql.lower()
    return any(name in lower for name in LASTING) and not any(ours in lower for ours in OURS)
