"""How a loop goes on when its database is away: again and again, ever more slowly."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar, cast

from django.db import DatabaseError, Error, InterfaceError, OperationalError

from django_once.processes.hygiene import drop

Answer = TypeVar("Answer")

# What says nothing about the statement: the line is gone, and nobody knows what became of it.
LOST: Final = (OperationalError, InterfaceError)
LONGEST_PAUSE: Final = 5.0
SAID_AGAIN_AFTER: Final = 10.0

log = logging.getLogger("django_once")


class Persistence:
    """One loop's patience with one database."""

    def __init__(self, alias: str, who: str) -> None:
        self.alias = alias
        self.who = who
        self.failures = 0
        self._said = ""
        self._said_at = 0.0
        self._is_told = False

    def tried(self, work: Callable[[], Answer]) -> tuple[bool, Answer | None]:
        """Return (True, answer), or (False, None) when the database did not answer for certain."""
        try:
            answer = work()
        except DatabaseError as error:
            self._failed(error)
            return False, None
        except InterfaceError as error:
            self._failed(error)
            return False, None
        if self.failures and self._is_told:
            log.warning("%s: database %r answers again.", self.who, self.alias)
            self._is_told = False
        self.failures = 0
        return True, answer

    @property
    def pause(self) -> float:
        """Seconds until the next try; it grows from a tenth to five, with jitter."""
        if not self.failures:
            return 0.0
        longest = min(LONGEST_PAUSE, 0.1 * 2 ** min(self.failures - 1, 10))
        return random.uniform(longest / 2, longest)

    def wait(self) -> None:
        """Sleep the pause."""
        time.sleep(self.pause)

    def _failed(self, error: Error) -> None:
        self.failures += 1
        said, now = str(error).strip(), time.monotonic()
        # Where one statement fails and the others do not, each turn would say so anew.
        is_news = said != self._said or now > self._said_at + SAID_AGAIN_AFTER
        level = logging.WARNING if is_news and not self._is_told else logging.DEBUG
        if level == logging.WARNING:
            self._said, self._said_at, self._is_told = said, now, True
        verb = "does not answer" if isinstance(error, LOST) else "refuses a statement"
        log.log(level, "%s: database %r %s: %s", self.who, self.alias, verb, said)
        drop(self.alias)


def insist(alias: str, who: str, work: Callable[[], Answer]) -> Answer:
    """Return the answer, however long the database takes to be there again."""
    persistence = Persistence(alias, who)
    while True:
        answered, answer = persistence.tried(work)
        if answered:
            return cast("Answer", answer)
        persistence.wait()
