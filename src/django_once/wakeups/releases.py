"""Hearing that a lock was released: NOTIFY on PostgreSQL, patience elsewhere.

The statement that releases a lock sends the NOTIFY itself when the row says that somebody waits.
Whoever waits looks again after a while whatever it hears, since a wakeup may be lost; and where
there is none at all, it looks ever less often.
"""

from __future__ import annotations

import random
import select
import time
from typing import Any, Final
from uuid import uuid4

from django_once.sql.lines import line
from django_once.sql.locks import CHANNEL

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.25
# A wakeup that was lost costs so much.
LONGEST_DEAFNESS: Final = 2.0
PATIENCE: Final = 1.0


class Releases:
    """What one waiter hears of one lock."""

    def __init__(self, database: str, name: str) -> None:
        self.database = database
        self.name = name
        self._ear: Any = None
        self._pause = FIRST_PAUSE

    @property
    def is_heard(self) -> bool:
        """Whether a release would be heard."""
        return self._ear is not None

    def listen(self) -> bool:
        """Listen; False where this database, driver or pooler carries no wakeups."""
        with line(self.database) as speaker:
            if speaker.vendor != "postgresql":
                return False
            try:
                import psycopg  # noqa: PLC0415 - only PostgreSQL's users have it
            except ImportError:
                return False
            parameters = speaker.get_connection_params()
            for name in ("cursor_factory", "context", "prepare_threshold", "server_side_binding"):
                parameters.pop(name, None)
            ear = psycopg.connect(**parameters, autocommit=True)
            ear.execute(f"LISTEN {CHANNEL}")
            # A pooler in transaction mode takes LISTEN and forgets it: then this never comes back.
            word = f"probe:{uuid4()}"
            with speaker.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, word])
            for notify in ear.notifies(timeout=PATIENCE):
                if notify.payload == word:
                    self._ear = ear
                    return True
            ear.execute(f"UNLISTEN {CHANNEL}")
            ear.close()
            return False

    def wait(self, seconds: float) -> None:
        """Return when the lock was released, or it is time to look again; at most so much later.

        Raises the driver's error when the line is gone.
        """
        if self._ear is None:
            time.sleep(min(seconds, self._pause * random.uniform(0.5, 1.0)))
            self._pause = min(LONGEST_PAUSE, self._pause * 1.5)
            return
        until = time.monotonic() + min(seconds, LONGEST_DEAFNESS)
        while (left := until - time.monotonic()) > 0:
            select.select([self._ear], [], [], left)
            if any(notify.payload == self.name for notify in self._ear.notifies(timeout=0)):
                return

    def close(self) -> None:
        """Stop listening."""
        if self._ear is not None:
            self._ear.close()
        self._ear = None
