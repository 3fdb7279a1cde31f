"""NOTIFY and LISTEN: the wakeup of PostgreSQL, announced after commit and heard on a line apart.

A NOTIFY takes one lock of the whole server at commit. So it is sent after the caller's commit, on
its own, and not for each job: the first within a short window goes out, the others are dropped. A
worker that was woken goes on looking for longer than that window before it sleeps, since whoever
dropped a NOTIFY has no thread to send it later.

A pooler in transaction mode takes LISTEN and forgets it. So a listener first sends itself a word,
and where that does not come back, the worker polls.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.db import DatabaseError, InterfaceError, connections, transaction

CHANNEL: Final = "once_wakeup"
# What follows a backend's name when the jobs are due later: the keeper looks when.
LATER: Final = ":later"
WINDOW: Final = 0.05
HOOKS_LOOKED_AT: Final = 20

_announced: dict[tuple[str, str], float] = {}


def tell(connection: Any, backend: str) -> None:
    """Wake workers of this backend at once, on a connection that need not be the thread's own."""
    if connection.vendor == "postgresql" and is_first_in_window(connection.alias, backend):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, backend])


def is_first_in_window(database: str, word: str) -> bool:
    """Return whether this process has not sent the same a moment ago."""
    now = time.monotonic()
    if now - _announced.get((database, word), -WINDOW) < WINDOW:
        return False
    _announced[database, word] = now
    return True


def announce(database: str, backend: str, *, is_ready: bool) -> None:
    """Wake workers of this backend when the caller's transaction has committed, once for each."""
    connection: Any = connections[database]
    if connection.vendor != "postgresql" or _is_of_a_test(connection):
        return
    wakeup = Wakeup(database, backend if is_ready else backend + LATER)
    try:
        commits_apart = not connection.in_atomic_block and not connection.get_autocommit()
    except (DatabaseError, InterfaceError):
        # To ask opens a connection. Where that fails nothing is open to be committed, and a
        # wakeup that cannot be sent costs a poll.
        return
    if commits_apart:
        # Django has no hooks here; what is sent inside the transaction is heard after its commit.
        wakeup.send_inside()
    elif not connection.in_atomic_block:
        wakeup()
    elif not _is_promised(connection, wakeup):
        transaction.on_commit(wakeup, using=database, robust=True)


def _is_of_a_test(connection: Any) -> bool:
    """Return whether this is the transaction around a test, which nobody will ever commit."""
    blocks: list[Any] = connection.atomic_blocks if connection.in_atomic_block else []
    return bool(blocks) and getattr(blocks[0], "_from_testcase", False)


def _is_promised(connection: Any, wakeup: Wakeup) -> bool:
    """Return whether this transaction will send it already.

    A savepoint that takes back the promise takes back what was stored after it, too. Among very
    many hooks it may be promised again, which is cheaper than to look at all of them each time.
    """
    return any(hook == wakeup for _, hook, _ in connection.run_on_commit[-HOOKS_LOOKED_AT:])


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A word for the workers of one database."""

    database: str
    word: str

    def __call__(self) -> None:
        """Send it, unless this process has sent the same a moment ago."""
        if is_first_in_window(self.database, self.word):
            self.send()

    def send(self) -> None:
        """Send it. The jobs are stored; one that cannot be sent costs a poll and nothing else.

        What a crash of the server loses is no job, so nobody waits for this commit to be on disk.
        """
        self._tell("SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)")

    def send_inside(self) -> None:
        """Send it inside the caller's transaction, which commits as the caller has it."""
        self._tell("SELECT pg_notify(%s, %s)")

    def _tell(self, statement: str) -> None:
        with (
            suppress(DatabaseError, InterfaceError),
            connections[self.database].cursor() as cursor,
        ):
            cursor.execute(statement, [CHANNEL, self.word])


class Listener:
    """A connection of its own that hears NOTIFY, in autocommit, outside every transaction."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.is_swallowed = False
        self._line: Any = None

    @property
    def is_open(self) -> bool:
        """Whether it is listening."""
        return self._line is not None

    def fileno(self) -> int:
        """Return what a selector waits for."""
        return int(self._line.fileno())

    def open(self, patience: float = 1.0) -> bool:
        """Listen; False where this database, driver or pooler does not carry wakeups.

        `is_swallowed` says afterwards whether it was a pooler, which took LISTEN and forgot it.
        """
        connection: Any = connections[self.database]
        if connection.vendor != "postgresql":
            return False
        try:
            import psycopg  # noqa: PLC0415 - only PostgreSQL's users have it
        except ImportError:
            return False
        parameters = connection.get_connection_params()
        for name in ("cursor_factory", "context", "prepare_threshold", "server_side_binding"):
            parameters.pop(name, None)
        line = psycopg.connect(**parameters, autocommit=True)
        word = f"probe:{uuid4()}"
        line.execute(f"LISTEN {CHANNEL}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, word])
        for notify in line.notifies(timeout=patience):
            if notify.payload == word:
                self._line = line
                self.is_swallowed = False
                return True
        # Else the pooler's session would go on hearing for whoever is lent it next.
        line.execute(f"UNLISTEN {CHANNEL}")
        line.close()
        self.is_swallowed = True
        return False

    def heard(self) -> set[str]:
        """Return the backends that were announced since the last call.

        Raises the driver's error when the line is gone.
        """
        return {notify.payload for notify in self._line.notifies(timeout=0)}

    def close(self) -> None:
        """Stop listening."""
        if self._line is not None:
            self._line.close()
        self._line = None
