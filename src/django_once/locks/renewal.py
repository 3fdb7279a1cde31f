"""Renewing what this process holds: one thread for each database with locks, while there are any.

It shares no connection with those who work under the locks, so a body that computes, waits or
holds a transaction open stays covered. It also closes the lines that nobody used for a while, and
ends when there is nothing left to watch over.
"""

from __future__ import annotations

import os
import threading
from uuid import UUID

from django_once import clock
from django_once.locks.holding import Held
from django_once.locks.place import Place
from django_once.sql import lines

_finding = threading.Lock()
_renewals: dict[str, Renewal] = {}


def renewal_of(place: Place) -> Renewal:
    """Return who renews the locks of a database."""
    with _finding:
        return _renewals.setdefault(place.database, Renewal(place.database))


class Renewal:
    """The held locks of one database, and the thread that renews them."""

    def __init__(self, database: str) -> None:
        self.database = database
        self._held: dict[UUID, Held] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    def watch(self, held: Held) -> None:
        """Renew this lock until it is forgotten or lost."""
        if held.place.joined is not None:
            # A test's transaction: nobody else sees it, and no other thread may use it.
            return
        with self._changed:
            self._held[held.nonce] = held
            self._see_to_it(held.renew_at)

    def forget(self, held: Held) -> None:
        """Renew this lock no more."""
        with self._changed:
            self._held.pop(held.nonce, None)

    def tidy(self) -> None:
        """Close the lines that were used for one statement, after a while."""
        with self._changed:
            idle_until = lines.idle_until(self.database)
            if idle_until is not None:
                self._see_to_it(idle_until)

    def _see_to_it(self, at: float) -> None:
        if self._thread is None or not self._thread.is_alive():
            name = f"once-locks-{self.database}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._wakes_at = 0.0
            self._thread.start()
        elif at < self._wakes_at:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._due()
                if due is None:
                    self._thread = None
                    return
            for held in due:
                held.renew()
                if held.lost.is_set():
                    self.forget(held)
            lines.close_idle(self.database)

    def _due(self) -> list[Held] | None:
        """Wait for the next moment at which something is to be done; None when nothing will be."""
        now = clock.uptime()
        moments = [held.renew_at for held in self._held.values()]
        idle_until = lines.idle_until(self.database)
        if idle_until is not None:
            moments.append(idle_until)
        if not moments:
            return None
        self._wakes_at = min(moments)
        if self._wakes_at > now:
            self._changed.wait(self._wakes_at - now)
            now = clock.uptime()
        self._wakes_at = 0.0
        return [held for held in self._held.values() if held.renew_at <= now]


def _forget_the_parents() -> None:
    global _finding, _renewals
    _finding, _renewals = threading.Lock(), {}


os.register_at_fork(after_in_child=_forget_the_parents)
