"""The scheduler: fires what is due, and sleeps until the next moment or until a schedule changes.

Any number of them may be at work on one database: each passes over what another holds, and none
is the leader. Nothing here holds a transaction for longer than a batch of schedules. What could
take long, a broker that does not answer, waits in a thread of its own backend. An error of the
database is met with patience, and an error that nobody thought of is told; neither ends the loop,
and what was due stays due.
"""

from __future__ import annotations

import random
import select
import signal
from collections.abc import Callable
from typing import Any, Final

from django.db import connections

from django_once import clock, events
from django_once.definitions import timetable
from django_once.models.execution.end import BATCH as CHORE_BATCH
from django_once.models.execution.end import complete_ended, overdue, prune
from django_once.models.execution.look import has_open_runs
from django_once.models.schedule.due import seconds_to_next
from django_once.processes.brokers import Brokers
from django_once.processes.child import Wire
from django_once.processes.persistence import Persistence
from django_once.schedules import schedule_overdue
from django_once.scheduling import SCHEDULES, dispatch
from django_once.scheduling.firing import BATCH, begin_next_in_turn, fire_due
from django_once.scheduling.syncing import sync
from django_once.wakeups.listen import Listener

# The longest sleep between two looks, where nothing wakes the scheduler earlier.
INTERVAL: Final = 15.0
UNWOKEN: Final = 5.0
CHORES_EVERY: Final = 5.0
PRUNES_EVERY: Final = 60.0
# Tasks that were unknown may have been loaded since.
FORGETS_EVERY: Final = 60.0
LISTENS_AGAIN: Final = 30.0
LEFT_TO_OTHERS: Final = 1.0


class Scheduler:
    """The loop over the schedules of one database."""

    def __init__(self, database: str, interval: float | None = None) -> None:
        self.database = database
        self.interval = INTERVAL if interval is None else interval
        self.is_over = False
        self.wire = Wire()
        self.lease = max(dispatch.LEASE, 2 * self.interval)
        self._persistence = Persistence(database, f"scheduler of {database!r}")
        self._listener = Listener(database)
        self._is_synced = False
        self._unknown: frozenset[str] = frozenset()
        self._due_in: float | None = None
        self._chores_at = self._prunes_at = self._forgets_at = self._listens_at = 0.0
        self._brokers = Brokers()

    def run(self) -> int:
        """Fire until told to stop; return the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        dispatch.hand_over_by(self._brokers.hand_over)
        while not self.is_over:
            self._safely(self.turn)
            self._sleep()
        self._brokers.end()
        self._listener.close()
        return 0

    def stop(self, *_: object) -> None:
        """Let the loop end after this turn."""
        self.is_over = True
        self.wire.ring()

    def turn(self) -> None:
        """Fire all that is due, begin what was waiting for its turn, and do the chores."""
        if not self._is_synced:
            self._is_synced, _ = self._tried(lambda: sync(self.database))
        now = clock.uptime()
        if now >= self._forgets_at:
            self._unknown, self._forgets_at = frozenset(), now + FORGETS_EVERY
        if self._is_due():
            self._fire(now)
        if now >= self._chores_at:
            self._look_after(now)

    def _is_due(self) -> bool:
        """Learn when the next schedule is due; return whether one is."""
        declared = timetable.declared()
        answered, seconds = self._tried(lambda: seconds_to_next(self.database, declared))
        self._due_in = seconds if answered else None
        return seconds is not None and seconds <= 0

    def _fire(self, now: float) -> None:
        """Fire all that is due here, in batches."""
        while not self.is_over:
            answered, fired = self._tried(
                lambda: fire_due(self.database, self._unknown, lease=self.lease)
            )
            if not answered or fired is None:
                return
            if fired.fired:
                # What was begun will end soon.
                self._chores_at = min(self._chores_at, now + CHORES_EVERY)
            if not fired.unknown <= self._unknown:
                self._unknown |= fired.unknown
            elif fired.looked_at < BATCH:
                break
        if self._is_due():
            # What this process leaves to others stays due.
            self._due_in = LEFT_TO_OTHERS

    def _look_after(self, now: float) -> None:
        """Look after what has ended, was due to succeed, or never reached its backend."""
        _, has_open = self._tried(lambda: has_open_runs(self.database))
        # Nothing to look after but what somebody else may begin: it can wait a little.
        rest = CHORES_EVERY if has_open else max(CHORES_EVERY, INTERVAL)
        self._chores_at = now + rest * random.uniform(0.9, 1.1)
        if has_open:
            self._tried(self._complete_ended)
            self._tried(lambda: begin_next_in_turn(self.database, self.lease))
            self._tried(lambda: dispatch.dispatch_again(self.database, self.lease))
        _, late = self._tried(lambda: overdue(self.database))
        for name, task, by in late or ():
            events.success_missing(name, task, by)
            schedule_overdue.send_robust(type(self), schedule=name, task=task, expected_by=by)
        if now >= self._prunes_at:
            self._prunes_at = now + PRUNES_EVERY * random.uniform(0.9, 1.1)
            while self._tried(lambda: prune(self.database))[1] == CHORE_BATCH:
                continue

    def _complete_ended(self) -> None:
        while complete_ended(self.database) == CHORE_BATCH and not self.is_over:
            continue

    def _sleep(self) -> None:
        """Wait for the next due moment, a changed schedule or the next chore."""
        if self.is_over:
            return
        self._listen()
        seconds = self.interval if self._listener.is_open else min(self.interval, UNWOKEN)
        if self._persistence.failures:
            seconds = self._persistence.pause
        elif self._due_in is not None:
            seconds = max(0.0, min(self._due_in, seconds))
        lines: list[Any] = [self.wire]
        if self._listener.is_open:
            lines.append(self._listener)
        until = min(clock.uptime() + seconds, self._chores_at)
        is_meant = False
        while not is_meant:
            ready, _, _ = select.select(lines, [], [], max(0.0, until - clock.uptime()))
            # Most words are about jobs, and no reason to ask when a schedule is due.
            is_meant = self._listener not in ready or self.wire in ready or self._hear()
        self.wire.clear()

    def _listen(self) -> None:
        now = clock.uptime()
        if self._listener.is_open or now < self._listens_at:
            return
        self._listens_at = now + LISTENS_AGAIN
        try:
            self._listener.open()
        except Exception as error:  # noqa: BLE001 - the driver's own errors, without importing it
            events.ours.warning("wakeup.unavailable: %s; the scheduler polls.", error)

    def _hear(self) -> bool:
        """Return whether this is about schedules, or the line is gone."""
        try:
            heard = self._listener.heard()
        except Exception as error:  # noqa: BLE001 - the driver's own errors, without importing it
            events.ours.warning("wakeup.lost: %s; the scheduler polls until it is back.", error)
            self._listener.close()
            return True
        if SCHEDULES in heard:
            self._unknown = frozenset()
        return SCHEDULES in heard

    def _tried(self, work: Callable[[], Any]) -> tuple[bool, Any]:
        return self._persistence.tried(work)

    def _safely(self, work: Callable[[], None]) -> None:
        """Go on after an error that nobody thought of: what was due stays due."""
        try:
            work()
        except Exception:  # noqa: BLE001 - the top of a process: tells, and goes on
            events.ours.exception("scheduler.failed: it goes on with what is due next.")
            connections[self.database].close()
            self._persistence.failures += 1
