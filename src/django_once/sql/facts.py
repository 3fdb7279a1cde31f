"""What a database says of itself: how it isolates, how it writes, which letters it keeps."""

from __future__ import annotations

from typing import Any

TABLES = ("once_job", "once_schedule", "once_series", "once_execution", "once_lock", "once_worker")


def isolation(connection: Any) -> str:
    """Return the isolation level of a transaction that says nothing of it, in lower case."""
    if connection.vendor == "postgresql":
        question = "SHOW default_transaction_isolation"
    elif connection.mysql_is_mariadb and connection.mysql_version < (11, 1):
        question = "SELECT @@session.tx_isolation"
    else:
        question = "SELECT @@session.transaction_isolation"
    ((level,),) = _asked(connection, question)
    return str(level).replace("-", " ").lower()


def journal_mode(connection: Any) -> str:
    """Return how this SQLite database keeps its changes: "wal" lets others read meanwhile."""
    ((mode,),) = _asked(connection, "PRAGMA journal_mode")
    return str(mode).lower()


def narrow_columns(connection: Any) -> list[str]:
    """Return the text columns of our tables that cannot keep every letter (MySQL, MariaDB)."""
    marks = ", ".join(["%s"] * len(TABLES))
    question = (
        "SELECT table_name, column_name FROM information_schema.columns "
        f"WHERE table_schema = database() AND table_name IN ({marks}) "
        "AND character_set_name <> 'utf8mb4' ORDER BY table_name, ordinal_position"
    )
    return [f"{table}.{column}" for table, column in _asked(connection, question, TABLES)]


def longest_packet(connection: Any) -> int:
    """Return how many bytes a statement may have (MySQL, MariaDB)."""
    ((size,),) = _asked(connection, "SELECT @@max_allowed_packet")
    return int(size)


def _asked(connection: Any, question: str, parameters: Any = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(question, parameters)
        return list(cursor.fetchall())
