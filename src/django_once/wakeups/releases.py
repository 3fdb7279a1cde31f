"""Hearing that a lock was released: NOTIFY on PostgreSQL, patience elsewhere.

The statement that releases a lock sends the NOTIFY itself when the row says that somebody waits.
Whoever waits looks again after a while whatever it hears, since a wakeup may be lost; and where
there is none at all, it looks ever less often.
"""

from __future__ import annotations

import random
import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from django.db import Error, connections

from django_once.sql.lines import line
from django_once.sql.locks import CHANNEL

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.25
# A wakeup that was lost costs so much.
LONGEST_DEAFNESS: Final = 2.0
PATIENCE: Final = 1.0
# Where a pooler swallows wakeups nobody listens for so long: to find out takes the patience.
ASK_AGAIN: Final = 60.0

_deaf_until: dict[str, float] = {}


class Releases:
    """What one waiter hears of one lock."""

    def __init__(self, database: str, name: str) -> None:
        self.database = database
        self.name = name
        self._ear: Any = None
        self._pause = FIRST_PAUSE
        # The driver's own, which only PostgreSQL's users have.
        self._errors: tuple[type[BaseException], ...] = (OSError,)

    @property
    def is_heard(self) -> bool:
        """Whether a release would be heard."""
        return self._ear is not None

    def listen(self) -> bool:
        """Listen; False where this database, driver or pooler carries no wakeups, or is away."""
        if time.monotonic() < _deaf_until.get(self.database, 0.0):
            return False
        if connections[self.database].vendor != "postgresql":
            return False
        try:
            import psycopg  # noqa: PLC0415 - only PostgreSQL's users have it
        except ImportError:
            return False
        self._errors = (psycopg.Error, OSError)
        try:
            self._ear = self._opened(psycopg.connect)
        except (Error, psycopg.Error):
            # The statement that takes the lock meets the same, and knows what to do.
            return False
        return self.is_heard

    def _opened(self, connect: Callable[..., Any]) -> Any:
        """Return a line that hears, None where a pooler takes LISTEN and forgets it."""
        with line(self.database) as speaker:
            parameters = speaker.get_connection_params()
            for name in ("cursor_factory", "context", "prepare_threshold", "server_side_binding"):
                parameters.pop(name, None)
            ear = connect(**parameters, autocommit=True)
            ear.execute(f"LISTEN {CHANNEL}")
            # Where it is forgotten this never comes back.
            word = f"probe:{uuid4()}"
            with speaker.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, word])
            for notify in ear.notifies(timeout=PATIENCE):
                if notify.payload == word:
                    return ear
            ear.execute(f"UNLISTEN {CHANNEL}")
            ear.close()
            _deaf_until[self.database] = time.monotonic() + ASK_AGAIN
            return None

    def wait(self, seconds: float) -> None:
        """Return when the lock was released, or it is time to look again; at most so much later."""
        if self._ear is None:
            time.sleep(min(seconds, self._pause * random.uniform(0.5, 1.0)))
            self._pause = min(LONGEST_PAUSE, self._pause * 1.5)
            return
        until = time.monotonic() + min(seconds, LONGEST_DEAFNESS)
        try:
            while (left := until - time.monotonic()) > 0:
                select.select([self._ear], [], [], left)
                if any(notify.payload == self.name for notify in self._ear.notifies(timeout=0)):
                    return
        except self._errors:
            # The line is gone: who waits looks by itself from here on.
            self.close()

    def close(self) -> None:
        """Stop listening."""
        if self._ear is not None:
            with suppress(*self._errors):
                self._ear.close()
        self._ear = None
