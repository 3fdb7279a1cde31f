"""A lock that is held: its fence, whether it may still be trusted, and its end.

A holder trusts its lease from the moment it sent the statement, by a clock that nobody sets, for
somewhat less than the lease. So it gives up before the database lets anybody else in, however its
host's own clock is set, and also when its answers are late or it was paused.
"""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError

from django_once import clock, events
from django_once.errors import LockLost
from django_once.locks.place import Place
from django_once.sql.locks import Standing

# For clocks that run at different speeds, and for the moment between a look and a write.
MARGIN: Final = 1 / 10
RENEWALS_IN_A_LEASE: Final = 3
TURNS: Final = 4
# What says nothing about a statement: nobody knows what became of it.
UNKNOWN: Final = (OperationalError, InterfaceError)


class Loss(threading.Event):
    """Is set when a lock must no longer be trusted: because somebody says so, or by the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.trusted_until = 0.0

    def is_set(self) -> bool:
        """Return whether the lock is lost; once it is, it stays so."""
        if not super().is_set() and clock.uptime() >= self.trusted_until:
            self.set()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Return True when the lock is lost, False when so many seconds went by without that."""
        until = float("inf") if timeout is None else clock.uptime() + timeout
        while not self.is_set():
            now = clock.uptime()
            if now >= until:
                return False
            # A renewal may move the moment of trust meanwhile, so it is looked at again.
            super().wait(max(0.0, min(until, self.trusted_until) - now))
        return True


class Held:
    """A lock in the hands of this process; `fence` is what its writes must carry."""

    def __init__(
        self, place: Place, name: str, standing: Standing, lease: timedelta, sent: float
    ) -> None:
        assert standing.nonce is not None
        self.name = name
        self.holder = standing.holder
        self.fence = standing.fence
        self.acquired_at = clock.from_database(standing.acquired_at)
        self.lease = lease
        self.lost = Loss()
        self.place = place
        self.nonce: UUID = standing.nonce
        self.renew_at = 0.0
        self._pid = os.getpid()
        self._is_over = False
        self._trust(sent, standing.remaining)

    def check(self) -> None:
        """Raise LockLost unless the lock is certainly held at this moment."""
        if os.getpid() != self._pid:
            raise LockLost(
                f"Lock {self.name!r} is held by process {self._pid}, not by this fork of it."
            )
        if self.place.joined is not None and not self._is_over:
            self.renew()
        if self._is_over or self.lost.is_set():
            raise LockLost(self._told())

    def renew(self) -> None:
        """Lengthen the lease; find the lock lost when that cannot be, and no more than told later
        when nobody answers."""
        from django_once.models import lock as rows

        if self.lost.is_set():
            events.lock_lost(self.name, self.fence, "it was not renewed in time.")
            return
        sent = clock.uptime()
        seconds = self.lease.total_seconds()
        try:
            with self.place.connection() as connection:
                is_held = rows.renew(connection, self.name, self.nonce, seconds)
        except (DatabaseError, InterfaceError) as error:
            # A server that was made read-only answers with a refusal; it may not stay so.
            events.lock_unanswered(self.name, self.fence, "renewed", error)
            self.renew_at = clock.uptime() + min(seconds / 10, 1.0)
            return
        if is_held:
            self._trust(sent, seconds)
        elif not self._is_over:
            self.lost.set()
            events.lock_lost(self.name, self.fence, "somebody else took it, or ended it.")

    def release(self) -> None:
        """Give the lock back; raise LockLost when it was not held until now.

        A lock that was given back before stays so. In a forked child it is left to the parent.
        """
        from django_once.locks.renewal import renewal_of

        if self._is_over or os.getpid() != self._pid:
            return
        was_lost = self.lost.is_set()
        self._is_over = True
        renewal_of(self.place).forget(self)
        if not self._give_back() or was_lost:
            self.lost.set()
            raise LockLost(self._told())
        events.lock_released(self.name, self.fence)

    def _give_back(self) -> bool:
        """Return whether nobody else had the lock until now; ask again where no answer came."""
        from django_once.models import lock as rows

        for turn in range(1, TURNS + 1):
            try:
                with self.place.connection() as connection:
                    return rows.release(connection, self.name, self.nonce) or (
                        turn > 1 and rows.was_released(connection, self.name, self.fence)
                    )
            except UNKNOWN as error:
                if self.place.joined is not None:
                    raise
                if turn == TURNS:
                    # The body is done, and was covered; the lease ends by itself.
                    events.lock_unanswered(self.name, self.fence, "released", error)
            time.sleep(random.uniform(0, 0.05 * 2**turn))
        return True

    def _trust(self, sent: float, seconds: float) -> None:
        lease = self.lease.total_seconds()
        # In a test's own transaction nobody else could take it; there the database is asked.
        is_apart = self.place.joined is None
        self.lost.trusted_until = sent + seconds - lease * MARGIN if is_apart else float("inf")
        self.renew_at = sent + seconds - lease + lease / RENEWALS_IN_A_LEASE

    def _told(self) -> str:
        if self._is_over and not self.lost.is_set():
            return f"Lock {self.name!r} was given back before; its fence was {self.fence}."
        return (
            f"Lock {self.name!r} was lost while {self.holder!r} held it under fence {self.fence}: "
            "its lease was over before it was renewed, or somebody ended it. Whoever holds it now "
            "has a higher fence."
        )

    def __repr__(self) -> str:
        return f"Held(name={self.name!r}, fence={self.fence}, holder={self.holder!r})"
