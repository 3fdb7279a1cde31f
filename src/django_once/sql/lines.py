"""Connections of our own, beside those of the caller: what is sent on them commits at once.

A lock that joined the caller's transaction would be seen by nobody until that commits, and be
undone when it rolls back. So its statements take one of these lines, each for the length of one
statement; a few stay open between two uses, and whoever holds locks closes those that nobody
used for a while.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from django.db import DatabaseError, Error, InterfaceError, connections

from django_once import clock
from django_once.sql import own

# A PostgreSQL that is asked to drop a database waits five seconds for its sessions to go.
IDLE_SECONDS: Final = 1.0
MOST_IDLE: Final = 4

_taking = threading.Lock()
_idle: dict[str, list[tuple[Any, float]]] = {}
# A forked child must not end its parent's sessions, so nothing here may be collected there.
_inherited: list[Any] = []


@contextmanager
def line(database: str) -> Iterator[Any]:
    """Lend a connection in autocommit; after any error it is closed, and so are the idle ones."""
    connection = _taken(database) or _opened(database)
    try:
        yield connection
    except BaseException:
        _close(connection)
        # They lead to the same server, which may have been restarted.
        close_idle(database, 0.0)
        raise
    _give_back(database, connection)


def close_idle(database: str, seconds: float = IDLE_SECONDS) -> None:
    """Close the lines that nobody used for so long."""
    before = clock.uptime() - seconds
    with _taking:
        kept = _idle.pop(database, [])
        old = [connection for connection, since in kept if since <= before]
        if len(old) < len(kept):
            _idle[database] = [pair for pair in kept if pair[1] > before]
    for connection in old:
        _close(connection)


def idle_until(database: str) -> float | None:
    """Return when the next idle line is to be closed, by uptime; None while there is none."""
    with _taking:
        idle = _idle.get(database)
        return min(since for _, since in idle) + IDLE_SECONDS if idle else None


def _taken(database: str) -> Any:
    with _taking:
        idle = _idle.get(database)
        return idle.pop()[0] if idle else None


def _give_back(database: str, connection: Any) -> None:
    with _taking:
        idle = _idle.setdefault(database, [])
        if len(idle) < MOST_IDLE:
            idle.append((connection, clock.uptime()))
            return
    _close(connection)


def _opened(database: str) -> Any:
    like: Any = connections[database]
    if not own.may_begin(like):
        return _plain(like)
    connection = _prepared(like)
    if connection is None:
        connection = _plain(like)
        # Where it does not answer, this raises, and nothing is concluded from it.
        connection.ensure_connection()
        own.refuse(database)
    return connection


def _prepared(like: Any) -> Any:
    """Return a connection that keeps its statements prepared, as `once_session`, where it may."""
    connection: Any = type(like)(own.settings_of(like.settings_dict), like.alias)
    connection.inc_thread_sharing()
    try:
        connection.once_session = own.begun(connection)
    except (DatabaseError, InterfaceError):
        connection.once_session = None
    if connection.once_session is None:
        _close(connection)
        return None
    return connection


def _plain(like: Any) -> Any:
    # A pool's last connection may be the one whose holder asks for this line.
    options = {name: value for name, value in like.settings_dict["OPTIONS"].items()
               if name != "pool"}  # fmt: skip
    settings = {**like.settings_dict, "OPTIONS": options, "AUTOCOMMIT": True}
    connection: Any = type(like)(settings, like.alias)
    connection.inc_thread_sharing()
    return connection


def _close(connection: Any) -> None:
    with suppress(Error):
        connection.close()


def _forget_the_parents() -> None:
    global _taking, _idle
    _inherited.append(_idle)
    _taking, _idle = threading.Lock(), {}


os.register_at_fork(after_in_child=_forget_the_parents)
