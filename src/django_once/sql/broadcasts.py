"""The statements of broadcasts: what is told, what was too long to be told, and who hears nothing.

A session that listens and does not read keeps everybody's notifications on the server, which has
room for eight gigabytes of them and then refuses every commit that would send one. A listening
process reads whatever its listeners do; one that was stopped cannot. So whoever listens looks
from time to time, and ends such sessions of ours long before the room is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django_once.sql.statements import Statements
from django_once.sql.triggers.values import literal

# By this name the sessions are found that listen to broadcasts.
SESSION: Final = "django-once broadcasts"
# Of the room for notifications; one who is a little late uses a thousandth of it.
FULL: Final = 0.05


def tell(statements: Statements, line: str, told: str) -> None:
    """Tell whoever listens on a line, when the caller's transaction commits (PostgreSQL)."""
    statements.rows("SELECT once_tell(%s, %s)", [line, told])


def telling(vendor: str, schema: str | None, line: str, told: str) -> str:
    """SQL by which a trigger tells whoever listens on a line; `told` is SQL, too.

    Where there is no NOTIFY a row waits for a listening process to pass it on.
    """
    if vendor == "postgresql":
        return f"PERFORM {schema}.once_tell({literal(line)}, {told});"
    return f"INSERT INTO once_broadcast (line, told) VALUES ({literal(line)}, {told})"


def kept(statements: Statements, id: UUID) -> str | None:
    """Return what was too long to be told, unless it was deleted meanwhile."""
    sql = "SELECT told FROM once_broadcast WHERE id = %s"
    for (told,) in statements.rows(sql, [statements.key(id)]):
        return str(told)
    return None


def waiting(statements: Statements, lines: Sequence[str], most: int) -> list[tuple[UUID, str, str]]:
    """Return what triggers have written down for these lines, the oldest first."""
    sql = (
        "SELECT id, line, told FROM once_broadcast "
        f"WHERE line IN ({statements.marks(lines)}) ORDER BY told_at LIMIT %s"
    )
    rows = statements.rows(sql, [*lines, most])
    return [(UUID(str(id)), line, told) for id, line, told in rows]


def taken(statements: Statements, id: UUID) -> bool:
    """Take what waits away, to pass it on; False when another has."""
    sql = "DELETE FROM once_broadcast WHERE id = %s"
    return statements.count(sql, [statements.key(id)]) == 1


def forget(statements: Statements, seconds: float) -> int:
    """Delete what is older than so many seconds; count it."""
    sql = f"DELETE FROM once_broadcast WHERE told_at < {statements.later('%s')}"
    return statements.count(sql, [-seconds])


def end_deaf(statements: Statements, full: float = FULL) -> int:
    """End sessions of ours that listen and do not read, when they fill the room; count them."""
    sql = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pg_notification_queue_usage() >= %s AND application_name = %s "
        "AND wait_event = 'ClientWrite' AND pid <> pg_backend_pid()"
    )
    rows: list[Any] = statements.rows(sql, [full, SESSION])
    return len(rows)
