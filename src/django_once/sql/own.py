"""Sessions of the engine's own on PostgreSQL: statements are prepared there, and planned once.

A worker sends the same few statements, thousands of times a second. On the connection of a thread
that also runs other people's code each must come with its planner settings, in a message of its
own, which is parsed and planned anew. So the threads that claim and settle have a session apart,
which begins with these settings, keeps its statements prepared and plans each of them once: no
statistics decide it, so no later plan would be another.

The settings are asked for as the session begins. A pooler in between refuses that or forgets it;
then there is no such session, and everything goes on as before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from django.db import DatabaseError, Error, InterfaceError, connections

SETTINGS: Final = {
    # As a message of its own says it: statements at another level meet each other with errors.
    "default_transaction_isolation": r"read\ committed",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}

_own = threading.local()
# Databases behind something that does not let a session begin with settings, and until when they
# are not asked again: a server that was full for a moment is no pooler.
_refusing: dict[str, float] = {}
ASK_AGAIN: Final = 60.0


def enter() -> None:
    """Give this thread, which runs nobody's code but ours, sessions of its own."""
    _own.sessions = {}


def session_of(alias: str) -> Session | None:
    """Return this thread's session of a database; None where there is none."""
    sessions: dict[str, Session] | None = getattr(_own, "sessions", None)
    if sessions is None:
        return None
    session = sessions.get(alias)
    if session is None and time.monotonic() >= _refusing.get(alias, 0.0):
        session = _opened(alias)
        if session is None:
            refuse(alias)
            return None
        sessions[alias] = session
    return session


def drop(alias: str) -> None:
    """Close this thread's session, whatever state it is in; the next use opens another."""
    session = getattr(_own, "sessions", {}).pop(alias, None)
    if session is not None:
        session.close()


class Session:
    """One connection in autocommit, on which every statement is prepared."""

    def __init__(self, wrapper: Any, cursor: Any) -> None:
        self._wrapper = wrapper
        self._cursor = cursor

    def rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        """Run one statement and return its rows."""
        with self._wrapper.wrap_database_errors:
            self._cursor.execute(sql, parameters)
            found: list[Any] = self._cursor.fetchall()
        return found

    def count(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one statement and return how many rows it changed, without looking at them."""
        with self._wrapper.wrap_database_errors:
            self._cursor.execute(sql, parameters)
        return int(self._cursor.rowcount)

    def close(self) -> None:
        """Close it."""
        with suppress(Error):
            self._wrapper.close()


def may_begin(like: Any) -> bool:
    """Return whether such a session is worth a try beside a connection like this."""
    is_psycopg = getattr(like.Database, "__name__", "") == "psycopg"
    return is_psycopg and time.monotonic() >= _refusing.get(like.alias, 0.0)


def refuse(alias: str) -> None:
    """Ask for no such session for a while: something in between does not have it."""
    _refusing[alias] = time.monotonic() + ASK_AGAIN


def begun(wrapper: Any) -> Session | None:
    """Return a session on a connection that `settings_of` describes, None where they are forgotten.

    Raises the database's error when it does not answer, or refuses the settings.
    """
    from psycopg import Cursor  # noqa: PLC0415 - only PostgreSQL's users have it

    wrapper.ensure_connection()
    raw = wrapper.connection
    with wrapper.wrap_database_errors:
        ((kept,),) = raw.cursor().execute("SHOW plan_cache_mode").fetchall()
    if kept != SETTINGS["plan_cache_mode"]:
        return None
    raw.prepare_threshold = 0
    cursor: Any = Cursor(raw)
    cursor.format = 1
    return Session(wrapper, cursor)


def settings_of(like: dict[str, Any]) -> dict[str, Any]:
    """Return a connection's settings with those of the planner, and without a pool."""
    asked = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    options = {name: value for name, value in like["OPTIONS"].items() if name != "pool"}
    options["options"] = f"{options.get('options', '')} {asked}".strip()
    return {**like, "OPTIONS": options, "AUTOCOMMIT": True}


def _opened(alias: str) -> Session | None:
    """Return a new session, or None where one cannot begin with settings.

    Raises the database's error when it does not answer at all.
    """
    like: Any = connections[alias]
    if not may_begin(like):
        return None
    # Where it does not answer, this raises, and nothing is concluded from it.
    like.ensure_connection()
    wrapper: Any = type(like)(settings_of(like.settings_dict), alias)
    try:
        session = begun(wrapper)
    except (DatabaseError, InterfaceError):
        session = None
    if session is None:
        with suppress(Error):
            wrapper.close()
    return session
