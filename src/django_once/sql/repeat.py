"""What a database's error means: undone and to be sent again, a refused value, or nobody knows.

Short statements that met another transaction are sent again, a few times, whole. Only what the
database undid for certain: a deadlock, a serialization failure, a lock that was not granted in
time. A broken connection is not among them, since nobody knows what became of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError

Answer = TypeVar("Answer")

TIMES: Final = 5
POSTGRESQL: Final = frozenset({"40001", "40P01", "55P03"})
MYSQL: Final = frozenset({1020, 1205, 1213})
# Too large for a packet, not text at all: MySQL's drivers call these operational too.
MYSQL_REFUSALS: Final = frozenset({1153, 1300, 1366, 1406})
IN_FAILED_TRANSACTION: Final = "25P02"
NO_SUCH_SAVEPOINT: Final = 1305


def repeated(connection: Any, statement: Callable[[], Answer]) -> Answer:
    """Return the statement's answer, after up to four conflicts.

    Inside a transaction of somebody else it is sent once: what must be repeated is theirs. That is
    so without autocommit too, where a deadlock has undone what the caller did before.
    """
    for turn in range(1, TIMES + 1):
        try:
            return statement()
        except DatabaseError as error:
            if turn == TIMES or not was_undone(error) or is_inside(connection):
                raise
            time.sleep(random.uniform(0, 0.01 * 2**turn))
    raise AssertionError("unreachable")


def is_inside(connection: Any) -> bool:
    """Return whether what is sent now joins a transaction that somebody else ends."""
    return bool(connection.in_atomic_block or not connection.get_autocommit())


def was_undone(error: BaseException) -> bool:
    """Return whether the database says that it undid the statement because others met it."""
    cause = error.__cause__
    if cause is None:
        return False
    # psycopg and psycopg2 have two names for it.
    if {getattr(cause, "sqlstate", None), getattr(cause, "pgcode", None)} & POSTGRESQL:
        return True
    if type(cause).__module__.startswith("sqlite3"):
        return "locked" in str(cause) or "busy" in str(cause)
    return bool(cause.args) and cause.args[0] in MYSQL


def was_refused(error: BaseException) -> bool:
    """Return whether the database refused what a statement carried: sent again, it would again."""
    if not isinstance(error, (OperationalError, InterfaceError)):
        return isinstance(error, DatabaseError)
    cause = error.__cause__
    return cause is not None and bool(cause.args) and cause.args[0] in MYSQL_REFUSALS


def has_ended_transaction(error: BaseException) -> bool:
    """Return whether the database says that the transaction, or its savepoint, is over already."""
    cause = error.__cause__
    if cause is None:
        return False
    if getattr(cause, "sqlstate", None) == IN_FAILED_TRANSACTION:
        return True
    if type(cause).__module__.startswith("sqlite3"):
        return "no such savepoint" in str(cause)
    return bool(cause.args) and cause.args[0] == NO_SUCH_SAVEPOINT


def has_undone_in_silence(error: BaseException) -> bool:
    """Return whether MySQL undid more than an error says, or less than its transaction.

    After a deadlock what follows runs in a transaction of its own, after a lock that was not
    granted the transaction goes on without the statement; a body that swallows either would
    commit a part.
    """
    cause = error.__cause__
    return cause is not None and bool(cause.args) and cause.args[0] in MYSQL
