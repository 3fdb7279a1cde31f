"""What a body leaves on its thread's connections, and how the next one does not meet it.

A body may leave anything behind: a broken or open transaction, a closed socket, another role. What
is in a state that cannot be known to be clean is closed; Django opens another when it is needed.

The state of a transaction stands in the driver, and asking for it costs nothing. What a session was
told (`SET search_path`, a role, a time zone, a lock of its own, a temporary table) stands in the
server, and asking there after each body would cost as much as a small body does. So statements are
looked at as they pass: one that only reads or writes rows leaves the session as it was, and after
any other the connection is closed. A statement sent through the driver's own cursor is not seen;
of it only what the driver knows is: its transaction, autocommit, isolation, time zone and user.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final

from django.db import connections
from django.db.backends.signals import connection_created

from django_once.sql import own
from django_once.sql.session import changes_session

log = logging.getLogger("django_once")

# What PostgreSQL tells its driver unasked.
TOLD: Final = (b"TimeZone", b"session_authorization", b"DateStyle", b"client_encoding")
IN_TRANSACTION: Final = 1
CHANGED: Final = "once_session_changed"
BORN: Final = "once_session_born"

_thread = threading.local()


def watch_new_connections() -> None:
    """Look at the statements of every connection that this process opens from now on."""
    connection_created.connect(_watch_one, dispatch_uid="django_once.hygiene")


def begin() -> None:
    """Say that this thread has no connection yet; `watch_new_connections` notices its first."""
    _thread.is_untouched = True


def _watch_one(connection: Any, **_: Any) -> None:
    _thread.is_untouched = False
    setattr(connection, CHANGED, False)
    setattr(connection, BORN, _told_by(connection))
    if not any(isinstance(wrapper, Watcher) for wrapper in connection.execute_wrappers):
        connection.execute_wrappers.append(Watcher(connection))


class Watcher:
    """Notices the statements of one connection that may outlive their transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __call__(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        """Let a statement pass, remembered if it may have changed the session."""
        if changes_session(sql, self._connection.vendor):
            setattr(self._connection, CHANGED, True)
        return execute(sql, params, many, context)


def clean() -> None:
    """Leave no transaction, setting, lock or dead socket of a body on this thread's connections."""
    if getattr(_thread, "is_untouched", False):
        return
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and not is_fit(connection):
            drop(connection.alias)


def is_fit(connection: Any) -> bool:
    """Return whether another body can use a connection as it is."""
    try:
        return is_clean(connection) and not is_worn(connection)
    except Exception:  # noqa: BLE001 - a driver's own errors, about a line that is closed already
        return False


def is_clean(connection: Any) -> bool:
    """Return whether a connection is as a body must find it."""
    return (
        not connection.in_atomic_block
        and not connection.needs_rollback
        and not getattr(connection, CHANGED, False)
        and connection.get_autocommit() == connection.settings_dict["AUTOCOMMIT"]
        and not _is_in_transaction(connection)
        and _is_as_born(connection)
    )


def is_worn(connection: Any) -> bool:
    """Return whether a clean connection has had errors, or is older than CONN_MAX_AGE.

    An age of zero, Django's default, means one request; between two bodies it would cost a new
    connection for each of them, so here it means no limit.
    """
    if connection.errors_occurred:
        if not connection.is_usable():
            return True
        connection.errors_occurred = False
    is_aging = bool(connection.settings_dict["CONN_MAX_AGE"])
    return is_aging and connection.close_at is not None and time.monotonic() >= connection.close_at


def _is_as_born(connection: Any) -> bool:
    born = getattr(connection, BORN, None)
    return born is None or born == _told_by(connection)


def _told_by(connection: Any) -> tuple[Any, ...] | None:
    """Return what the driver knows of its session without asking the server."""
    raw = connection.connection
    line = getattr(raw, "pgconn", None)
    if line is None:
        return None
    return (*map(line.parameter_status, TOLD), raw.isolation_level, raw.read_only)


def _is_in_transaction(connection: Any) -> bool:
    raw = connection.connection
    if connection.vendor == "postgresql":
        # psycopg 3 and 2 say the same in different places; 0 is idle, and a closed line is not.
        line = getattr(raw, "pgconn", None) or raw.info
        return bool(raw.closed) or int(line.transaction_status) != 0
    if connection.vendor == "sqlite":
        return bool(raw.in_transaction)
    # One of MySQL's drivers knows the first, both know the second.
    return bool(getattr(raw, "server_status", 0) & IN_TRANSACTION) or not getattr(raw, "open", 1)


def _forget_transaction(connection: Any) -> None:
    connection.in_atomic_block = False
    connection.needs_rollback = False
    connection.savepoint_ids = []
    connection.atomic_blocks = []
    connection.run_on_commit = []
    connection.closed_in_transaction = False
    connection.connection = None


def drop_all() -> None:
    """Close every connection of this thread, which is about to end."""
    for connection in connections.all(initialized_only=True):
        drop(connection.alias)


def drop(alias: str) -> None:
    """Close this thread's connection, whatever state it is in, so that the next use opens one."""
    connection: Any = connections[alias]
    # Django gives a connection to its pool as it is, and a pool keeps none that is closed.
    is_pooled = getattr(connection, "pool", None) is not None
    own.drop(alias)
    try:
        if is_pooled and connection.connection is not None:
            connection.connection.close()
        connection.close()
    except Exception:
        log.debug("A lost connection could not even be closed.", exc_info=True)
    _forget_transaction(connection)
