"""The INSERT of one job, prepared on the caller's connection where nothing stands in between.

To parse and plan it takes the server a third of the time of the whole, most of it for columns that
the job does not fill. But a pooler gives each transaction another session, and knows nothing of
what was prepared in the one before. So the first INSERTs also ask for the server's process: where
it is the one that the connection was opened with, nobody stands in between, and the next are
prepared. A pooler tells its clients a process of its own.

Only this statement is prepared; what the caller's code sends stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from django.db import DatabaseError

from django_once.sql.repeat import is_inside

# Whoever enqueues a few jobs on a connection gains nothing by one more trip.
THRESHOLD: Final = 5
# So high that nothing is prepared which does not ask for it.
NEVER_BY_ITSELF: Final = 2**31
# The statement was removed behind the driver's back, or no longer fits the table.
GONE: Final = frozenset({"26000", "0A000"})
INSERTS: Final = "once_inserts"


class Inserts:
    """What one line to the server has inserted, and how it goes on."""

    __slots__ = ("cursor", "is_direct", "times")

    def __init__(self) -> None:
        self.times = 0
        self.is_direct = True
        self.cursor: Any = None


def insert(connection: Any, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
    """Run an INSERT of one row that ends with what it returns; return that row."""
    if connection.queries_logged:
        # Django's log asks the cursor for what it sent; one that prepares does not know it.
        return _insert(connection, sql, parameters)
    inserts: Inserts | None = getattr(connection.connection, INSERTS, None)
    if inserts is not None and inserts.cursor is not None:
        return _insert_prepared(connection, inserts, sql, parameters)
    if (inserts is not None and not inserts.is_direct) or not _may_prepare(connection):
        return _insert(connection, sql, parameters)
    *row, process = _insert(connection, f"{sql}, pg_backend_pid()", parameters)
    _count(connection.connection, process)
    return row


def _count(raw: Any, process: int) -> None:
    """Remember that this line has inserted once more, and with which process of the server."""
    inserts = getattr(raw, INSERTS, None)
    if inserts is None:
        inserts = Inserts()
        setattr(raw, INSERTS, inserts)
    inserts.times += 1
    inserts.is_direct = inserts.is_direct and process == raw.info.backend_pid
    if inserts.is_direct and inserts.times >= THRESHOLD:
        if raw.prepare_threshold is None:
            raw.prepare_threshold = NEVER_BY_ITSELF
        inserts.cursor = _preparing()(raw)


def _insert(connection: Any, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: Sequence[Any] = cursor.fetchone()
    return row


def _insert_prepared(
    connection: Any, inserts: Inserts, sql: str, parameters: Sequence[Any]
) -> Sequence[Any]:
    # As Django wraps its own: what looks at statements sees this one too.
    connection.validate_thread_sharing()
    try:
        connection.make_cursor(inserts.cursor).execute(sql, parameters)
        row: Sequence[Any] = inserts.cursor.fetchone()
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) not in GONE or is_inside(connection):
            raise
        inserts.cursor, inserts.is_direct = None, False
        return _insert(connection, sql, parameters)
    return row


def _may_prepare(connection: Any) -> bool:
    """Return whether the driver can, and the settings do not say that it must not."""
    if connection.Database.__name__ != "psycopg":
        return False
    settings = connection.settings_dict
    if settings.get("DISABLE_SERVER_SIDE_CURSORS"):
        return False
    return settings["OPTIONS"].get("prepare_threshold", THRESHOLD) is not None


@cache
def _preparing() -> Any:
    """Return the class of cursors that prepare what they execute."""
    from psycopg import Cursor  # noqa: PLC0415 - only PostgreSQL's users have it

    class Preparing(Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **_: Any) -> Any:
            return super().execute(query, params, prepare=True)

    return Preparing
