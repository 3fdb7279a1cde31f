"""One body at work: since when, until when, and whether it was asked to end.

Nobody can stop a thread from outside. So a body is asked: what it is asked for stands here, where
its context looks, and where a coroutine is awaited it is interrupted as well. The first reason
stays; it is the exception that `context.check()` raises, always the same one, so that the end of
the attempt can be told from an error of the body's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django_once.errors import LockLost, OnceError, TimedOut, WorkerLost
from django_once.locks.holding import Held
from django_once.sql.values import Attempt, Next, Told


class Running:
    """A body at work, as its slot and its context see it."""

    __slots__ = (
        "_may_go_on", "asked", "attempt", "began", "held", "interrupt", "next", "over_at",
        "told", "was_called",
    )  # fmt: skip

    def __init__(self, attempt: Attempt, may_go_on: Callable[[], bool] | None = None) -> None:
        self.attempt = attempt
        self.began = time.monotonic()
        self.over_at = self.began + attempt.timeout if attempt.timeout else None
        self.was_called = False
        self.asked: OnceError | None = None
        self.interrupt: Callable[[], object] | None = None
        self.held: Held | None = None
        self.next: Next | None = None
        self.told: Told | None = None
        self._may_go_on = may_go_on

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.began

    def tell(self, done: float, total: float | None, message: str) -> None:
        """Keep how far the body is, until somebody writes it down."""
        self.told = Told(self.attempt.id, self.attempt.claim, done, total, message)

    def take_told(self) -> Told | None:
        """Return how far the body is, once."""
        told, self.told = self.told, None
        return told

    def ask(self, why: OnceError) -> None:
        """Ask the body to end; only the first reason counts."""
        if self.asked is None:
            self.asked = why
            if self.interrupt is not None:
                self.interrupt()

    def ask_for_time(self) -> None:
        """Ask the body to end because its time is over."""
        self.ask(
            TimedOut(
                f"Attempt {self.attempt.attempt} of job {self.attempt.id} ran past its timeout of "
                f"{self.attempt.timeout:g} s."
            )
        )

    def why_stop(self) -> OnceError | None:
        """Return why this body should end now, or None while it may go on."""
        if self.asked is None and self.over_at is not None and time.monotonic() >= self.over_at:
            self.ask_for_time()
        if self.asked is None and self._may_go_on is not None and not self._may_go_on():
            self.ask(
                WorkerLost(
                    f"The lease of worker {self.attempt.worker_name!r} could not be renewed in "
                    f"time, so job {self.attempt.id} may be another's by now."
                )
            )
        return self.asked or self.why_stop_for_lock()

    def why_stop_for_lock(self) -> OnceError | None:
        """Return why a body under a lock should end now, or None while the lock is its own."""
        if self.held is not None and self.held.lost.is_set():
            self.ask(
                LockLost(
                    f"Lock {self.held.name!r} was lost, so job {self.attempt.id} may no longer "
                    "write what it protects."
                )
            )
            return self.asked
        return None
