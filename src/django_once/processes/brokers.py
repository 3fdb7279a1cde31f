"""Brokers: the runs for each foreign backend are handed over in a thread of its own.

So one that hangs delays no other, nor the scheduler's end: these threads end with the process. What
was not handed over by then stays recorded, and is offered again when its lease has lapsed.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Final
from uuid import UUID

from django.db import connections

from django_once import events
from django_once.scheduling import dispatch

# How long the end of a scheduler waits for what is being handed over.
PATIENCE: Final = 2.0


class Brokers:
    """The threads of one scheduler, each begun when its backend has something to run."""

    def __init__(self) -> None:
        self._threads: dict[str, Broker] = {}

    def hand_over(self, database: str, backend: str, record: UUID) -> None:
        """Let a run be handed over soon."""
        broker = self._threads.get(backend)
        if broker is None:
            broker = self._threads[backend] = Broker(backend)
            broker.start()
        broker.take(database, record)

    def end(self) -> None:
        """Hand over nothing more, and wait a moment for what is under way."""
        for broker in self._threads.values():
            broker.is_over = True
            broker.orders.put(None)
        for broker in self._threads.values():
            broker.join(PATIENCE)


class Broker(threading.Thread):
    """Hands over what one backend is to run, one after the other."""

    def __init__(self, backend: str) -> None:
        super().__init__(name=f"once-broker-{backend}", daemon=True)
        self.orders: SimpleQueue[tuple[str, UUID] | None] = SimpleQueue()
        self.is_over = False
        self._waiting: set[UUID] = set()

    def take(self, database: str, record: UUID) -> None:
        """Let a run be handed over; one that waits for that already is not sent twice.

        While a broker hangs the leases of what waits for it lapse, again and again.
        """
        if record not in self._waiting:
            self._waiting.add(record)
            self.orders.put((database, record))

    def run(self) -> None:
        """Hand over until told to end."""
        while (order := self.orders.get()) is not None and not self.is_over:
            _dispatch_apart(*order)
            self._waiting.discard(order[1])


def _dispatch_apart(database: str, record: UUID) -> None:
    """Dispatch in this thread, and leave no connection of it open."""
    try:
        dispatch.dispatch(database, record)
    except Exception:  # noqa: BLE001 - the top of a thread, whose errors nobody else would tell
        events.ours.exception("schedule.undispatched record=%s: it is offered again.", record)
    finally:
        connections.close_all()
