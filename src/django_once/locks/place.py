"""Where a lock is taken: in which database, and on which connection to it.

A connection of our own, so that the lock is there for everybody at once and a rollback of the
caller does not undo it. Two cases know better: the transaction around a Django `TestCase`, beside
which nothing can be written and seen, and a database in memory, which only one connection has.
There the lock joins the caller's connection, and is as real as everything else in that test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.transaction import TransactionManagementError

from django_once import clock, compat, conf
from django_once.backend import DatabaseBackend
from django_once.errors import InvalidOption, shortened
from django_once.sql.lines import line

LONGEST_NAME: Final = 255
LONGEST_HOLDER: Final = 255


@dataclass(frozen=True, slots=True)
class Place:
    """One database, and the caller's connection to it where the lock must join that."""

    database: str
    joined: Any = None

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend the connection for one statement."""
        if self.joined is not None:
            yield self.joined
            return
        with line(self.database) as own:
            yield own

    @property
    def may_listen(self) -> bool:
        """Whether the settings let workers and waiters be woken by the database."""
        if self.joined is not None:
            return False
        backends = [compat.task_backends[alias] for alias in compat.task_backends]
        keepers = [backend for backend in backends if isinstance(backend, DatabaseBackend)]
        here = [backend for backend in keepers if backend.settings.database == self.database]
        return all(backend.settings.wakeup == "auto" for backend in here)


def place_of(using: str | None) -> Place:
    """Return where a lock is taken by the calling thread; refuse where nobody could see it."""
    database = using or database_of_locks()
    if database not in connections:
        raise InvalidOption(
            f"using names {database!r}, which is not among DATABASES: {', '.join(connections)}."
        )
    connection: Any = connections[database]
    if _is_inside_a_test(connection) or _is_in_memory(connection):
        return Place(database, connection)
    if connection.vendor == "sqlite" and connection.in_atomic_block:
        raise TransactionManagementError(
            f"A lock cannot be taken inside a transaction of SQLite database {database!r}: there "
            "is one writer, and the transaction keeps the lock from being written. Take the lock "
            "first, and begin the transaction inside it."
        )
    return Place(database)


def database_of_locks() -> str:
    """Return the database of the default backend's jobs, where locks are unless told otherwise."""
    with suppress(compat.InvalidTaskBackend):
        backend = compat.task_backends[compat.DEFAULT_TASK_BACKEND_ALIAS]
        if isinstance(backend, DatabaseBackend):
            return backend.settings.database
    return DEFAULT_DB_ALIAS


def checked_name(name: object) -> str:
    """Return the name of a lock, or refuse what no row could keep."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or not name.strip():
        raise InvalidOption(
            f"A lock's name has 1 to {LONGEST_NAME} characters, got {shortened(name)}."
        )
    if not name.isprintable():
        raise InvalidOption(
            f"A lock's name has nothing that cannot be printed, got {shortened(name)}."
        )
    return name


def checked_holder(holder: object) -> str:
    """Return who takes a lock, or refuse what no row could keep."""
    if not isinstance(holder, str) or not 1 <= len(holder) <= LONGEST_HOLDER:
        raise InvalidOption(
            f"The holder of a lock has 1 to {LONGEST_HOLDER} characters, got {shortened(holder)}."
        )
    return holder


def checked_lease(lease: object, option: str = "lease") -> timedelta:
    """Return how long a lock is held unless it is renewed."""
    length = clock.duration(lease, option)
    if not conf.SHORTEST_LEASE <= length <= conf.LONGEST_LEASE:
        raise InvalidOption(
            f"{option} must be from 1 second to 1 day, since it is renewed every third of it, "
            f"got {shortened(lease)}."
        )
    return length


def checked_wait(wait: object) -> float:
    """Return for how many seconds to wait; None is as long as it takes."""
    return float("inf") if wait is None else clock.duration(wait, "wait").total_seconds()


def _is_inside_a_test(connection: Any) -> bool:
    return any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def _is_in_memory(connection: Any) -> bool:
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())
