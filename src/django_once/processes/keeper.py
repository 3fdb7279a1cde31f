"""The keeper: renews the leases of all its siblings, wakes them, and looks after what is nobody's.

One small update every third of a lease covers every job that the workers of this supervisor hold.
When it was good, the time at which it was sent goes on the board; whoever cannot see it renewed
in time stops by itself. A worker whose row was declared lost can never be renewed: its place is
marked, and it ends.

The keeper also gives due jobs their place, declares other hosts' lapsed workers lost and takes
back what they held. It declares nobody lost before it has itself read the database without
interruption for one lease: after a fail-over, a long lock of a table or a pause of the host all
leases have lapsed, and nobody has died.

Where a body holds the interpreter's lock, its worker is silent but at work: it is renewed, and
relieved of what it has claimed and cannot start. What is old is deleted by a thread of its own,
on a connection of its own, since no batch of deletions may delay a renewal.

It outlives its supervisor by a moment: when the line to it closes, the workers are dead with it,
and nobody knows better what they had started.
"""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from django_once import clock, events
from django_once.backend import DatabaseBackend
from django_once.crash import crash_point
from django_once.declarations import publish
from django_once.models.figure import write_down
from django_once.models.gate.admit import admit_waiting
from django_once.models.job.age import lift
from django_once.models.job.expire import relieve, sweep
from django_once.models.job.locked import let_go_overlooked
from django_once.models.job.ready import promote, seconds_to_next_due
from django_once.models.nets import caught
from django_once.models.pause.stop import end_lapsed
from django_once.models.stops import let_go_unstopped, look_after_tallies
from django_once.models.worker import expire, is_to_drain, renew, unrenewed
from django_once.processes import board, coroner, limits, preflight
from django_once.processes.board import Board, Place
from django_once.processes.child import EX_CONFIG, Wire, has_exited, send
from django_once.processes.coroner import Death
from django_once.processes.hygiene import drop_all
from django_once.processes.janitor import Janitor
from django_once.processes.persistence import Persistence
from django_once.processes.plan import Plan
from django_once.processes.seeder import SECONDS_BETWEEN_LOOKS, look_after_series
from django_once.wakeups.listen import LATER, WINDOW, Listener, announce

LONGEST_SWEEP: Final = 10.0
# How rarely those are looked for whom a pause blocks that is over.
OVERLOOKED: Final = 60.0
DUE_UNWOKEN: Final = 1.0
DUE_WOKEN: Final = 10.0
# After this time without a sign of life a worker is relieved of what waits behind its bodies.
SILENT: Final = 3.0
FOREVER: Final = float("inf")
# How soon a line that was lost is opened again, at first and at the longest; and how rarely a
# pooler is asked again whether it carries wakeups.
LISTEN_AGAIN: Final = 0.5
LONGEST_UNHEARD: Final = 30.0
ASK_A_POOLER: Final = 600.0
LONGEST_PROBE: Final = 1.0
# A rest that is longer than this needs no open connection.
LONGEST_HELD: Final = 5.0


class Keeper:
    """The process that keeps the leases."""

    def __init__(
        self, plan: Plan, backend: DatabaseBackend, memory: Board, wires: Sequence[Wire],
        wire: Wire, lifeline: int,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.backend = backend
        self.board = memory
        self.wires = wires
        self.wire = wire
        self.lifeline = lifeline
        self._database = backend.settings.database
        self._lease = backend.settings.lease.total_seconds()
        self._listener = Listener(self._database)
        self._listen_pause = LISTEN_AGAIN
        self._persistence = Persistence(self._database, "keeper")
        self._looked_at = ""
        self._lock_looked_at = ""
        self._let_go_at = self._look_again_at = 0.0
        self._age_at = 0.0
        self._renew_at = self._sweep_at = self._due_at = self._listen_at = 0.0
        self._reading_since = clock.uptime()
        self._supervisor = os.getppid()
        self._is_draining = False

    def run(self) -> int:
        """Keep until the supervisor is gone; return the exit status."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        limits.limit(self._database)
        if not self.board.is_ready and not preflight.passed(
            self.plan, self.backend, self._persistence, self._is_orphaned
        ):
            return EX_CONFIG
        self._listen()
        if not self.board.is_ready:
            print(preflight.first_line(self.plan, self.backend, self._listener), flush=True)
            self.board.is_ready = True
        threading.Thread(target=self._tidy, name="once-janitor", daemon=True).start()
        while not self._is_orphaned():
            self._turn()
            self._wait()
        self._bury_all()
        return 0

    def _turn(self) -> None:
        failures = self._persistence.failures
        self.board.keep()
        self._notice_delay()
        now = clock.uptime()
        if now >= self._renew_at:
            self._renew()
        if now >= self._listen_at and not self._listener.is_open:
            self._listen()
        if now >= self._due_at:
            self._promote()
        if now >= self._sweep_at:
            self._sweep()
        if self.backend.settings.ageing and now >= self._age_at:
            self._lift_the_old(now)
        self._relieve_the_silent(now)
        if self._persistence.failures > failures:
            self._reading_since = clock.uptime()
            self._persistence.wait()

    def _notice_delay(self) -> None:
        """Read anew for one lease when a renewal is overdue.

        A host that was paused, or a database that kept everybody waiting, may have kept the others
        from renewing as well.
        """
        if 0.0 < self._renew_at < clock.uptime() - self._lease / 4:
            self._reading_since = clock.uptime()

    def _renew(self) -> None:
        """Lengthen the leases, and mark the places of those that were lost before."""
        places = [
            place for place in self.board.places if place.state != board.EMPTY and not place.is_lost
        ]
        held = [
            place.worker for place in places if place.state not in (board.STARTING, board.LEAVING)
        ]
        sent = clock.uptime()
        answered, renewed = self._persistence.tried(
            lambda: renew(self._database, held, self.backend.settings.lease)
        )
        if not answered:
            self._renew_at = 0.0
            return
        crash_point("renewal.committed")
        self._renew_at = sent + self._lease / 3
        if renewed == len(held):
            self.board.renew(sent)
            return
        self._mark_lost(places, held, sent)

    def _mark_lost(self, places: list[Place], held: list[Any], sent: float) -> None:
        answered, lost = self._persistence.tried(lambda: unrenewed(self._database, held))
        if not answered or lost is None:
            return
        for place in places:
            if place.worker in lost:
                place.lose()
                events.worker_lost(place.worker)
        self.board.renew(sent)

    def _promote(self) -> None:
        """Give due jobs their place, if any are; know when the next one is due."""
        longest = DUE_WOKEN if self.board.wakes else DUE_UNWOKEN
        answered, seconds = self._persistence.tried(lambda: seconds_to_next_due(self._database))
        if answered and seconds is not None and seconds <= 0:
            answered, placed = self._persistence.tried(lambda: promote(self._database))
            if placed:
                self._wake()
        if not answered or seconds is None or seconds > longest:
            seconds = longest
        now = clock.uptime()
        self._due_at = now + max(0.0, seconds)
        if now < self._look_again_at < self._due_at:
            self._due_at = self._look_again_at

    def _lift_the_old(self, now: float) -> None:
        """Give a higher priority to those who have waited long, in queues that say so."""
        ageing = self.backend.settings.ageing
        for queue, every in ageing.items():
            self._persistence.tried(partial(lift, self._database, self.backend.alias, queue, every))
        shortest = min(ageing.values()).total_seconds()
        self._age_at = now + min(LONGEST_SWEEP, shortest / 4)

    def _relieve_the_silent(self, now: float) -> None:
        """Give back for silent workers what they have claimed and not called."""
        for place in self.board.places:
            is_at_work = place.state in (board.IDLE, board.BUSY, board.DRAINING)
            if not is_at_work or not place.waiting or now - place.seen_at < SILENT:
                continue
            if place.seen_at < place.doubted_until < FOREVER:
                continue
            # From here on it asks before it starts anything; so what it has not begun, it cannot.
            place.doubt(FOREVER)
            worker, begun = place.worker, place.begun()
            answered, given = self._persistence.tried(
                partial(relieve, self._database, worker, begun)
            )
            if not answered:
                continue
            place.doubt(clock.uptime())
            events.worker_relieved(worker, len(given or ()))
            self._announce()

    def _sweep(self) -> None:
        """Declare lapsed workers lost, and take back whatever no living worker holds."""
        pause = min(LONGEST_SWEEP, self._lease / 4)
        self._sweep_at = clock.uptime() + pause * random.uniform(0.8, 1.2)
        self._notice_delay()
        if clock.uptime() - self._reading_since >= self._lease:
            _, lost = self._persistence.tried(lambda: expire(self._database))
            for worker in lost or ():
                events.worker_expired(worker)
        crash_point("expire.committed")
        _, swept = self._persistence.tried(lambda: sweep(self._database))
        for job in swept or ():
            events.job_swept(job)
        self._persistence.tried(lambda: write_down(self._database, self.backend.alias))
        if swept:
            # What waits at a gate came back without a place.
            self._sweep_at = self._due_at = 0.0
            self._announce()
        _, found = self._persistence.tried(lambda: caught(self._database, self.backend.alias))
        if found is None:
            return
        if found.at_gates or self._looked_at:
            self._admit()
        if found.in_tallies or found.by_pauses or clock.uptime() >= self._let_go_at:
            self._let_go()
        if found.by_locks or self._lock_looked_at:
            self._let_locks_go()
        if found.to_drain:
            self._drain_if_asked()

    def _drain_if_asked(self) -> None:
        """Pass on, once, that an operator wants these workers to drain: a second signal kills."""
        held = [one.worker for one in self.board.places if one.state in (board.IDLE, board.BUSY)]
        if self._is_draining or not held:
            return
        _, asked = self._persistence.tried(lambda: is_to_drain(self._database, held))
        # Whose parent is gone has another one now, which is nobody's to signal.
        if asked and os.getppid() == self._supervisor:
            self._is_draining = True
            send(self._supervisor, signal.SIGTERM)

    def _let_go(self) -> None:
        """End pauses whose time is over; let go what they blocked, and what was overlooked."""
        _, found = self._persistence.tried(lambda: look_after_tallies(self._database))
        if found:
            self._announce()
        _, ended = self._persistence.tried(lambda: end_lapsed(self._database))
        if not ended and clock.uptime() < self._let_go_at:
            return
        self._let_go_at = clock.uptime() + OVERLOOKED
        _, gone = self._persistence.tried(lambda: let_go_unstopped(self._database))
        if gone or ended:
            self._announce()

    def _let_locks_go(self) -> None:
        """Let a job go for each lock that nobody holds, whose holder died or was overlooked."""
        _, found = self._persistence.tried(
            lambda: let_go_overlooked(self._database, self._lock_looked_at)
        )
        gone, self._lock_looked_at = found or (0, "")
        if gone:
            self._announce()

    def _admit(self) -> None:
        """Admit whoever may pass a gate and was overlooked, some gates at a time."""
        _, found = self._persistence.tried(
            lambda: admit_waiting(self._database, self.backend.alias, self._looked_at)
        )
        admitted, self._looked_at = found or (0, "")
        if self._looked_at:
            self._sweep_at = 0.0
        if admitted:
            self._announce()

    def _announce(self) -> None:
        """Wake workers, here and elsewhere, for what went back."""
        self._persistence.tried(lambda: announce(self._database, self.backend.alias, is_ready=True))
        self._wake()

    def _tidy(self) -> None:
        """Delete what is old, a little at a time, and mend series, while this process lives."""
        janitor = Janitor(self.backend)
        persistence = Persistence(self._database, "janitor")
        look_at = 0.0
        while not persistence.tried(lambda: publish(self.backend))[0]:
            time.sleep(persistence.pause)
        while True:
            if clock.uptime() >= look_at:
                persistence.tried(lambda: look_after_series(self.backend))
                look_at = clock.uptime() + SECONDS_BETWEEN_LOOKS
            answered, rest = persistence.tried(janitor.turn)
            if not answered or rest is None:
                rest = persistence.pause
            elif rest > LONGEST_HELD:
                drop_all()
            time.sleep(rest)

    def _listen(self) -> None:
        """Hear NOTIFY where that works; try again later where it did not."""
        self.board.wakes = False
        self._listen_at = clock.uptime() + ASK_A_POOLER
        if self.backend.settings.wakeup != "auto":
            return
        try:
            self.board.wakes = self._listener.open(min(LONGEST_PROBE, self._lease / 6))
            self._listen_pause = LISTEN_AGAIN
        except Exception as error:  # noqa: BLE001 - the driver's own errors, without importing it
            level = "warning" if self._listen_pause == LISTEN_AGAIN else "debug"
            getattr(events.ours, level)("wakeup.unavailable: %s; workers poll.", error)
            self._listen_at = clock.uptime() + self._listen_pause
            self._listen_pause = min(LONGEST_UNHEARD, self._listen_pause * 2)

    def _wait(self) -> None:
        soonest = min(self._renew_at, self._sweep_at, self._due_at)
        if self.backend.settings.ageing:
            soonest = min(soonest, self._age_at)
        lines: list[Any] = [self.wire, self.lifeline]
        if self._listener.is_open:
            lines.append(self._listener)
        ready, _, _ = select.select(lines, [], [], max(0.0, min(1.0, soonest - clock.uptime())))
        if self.wire in ready and self.wire.clear():
            if self.board.is_later:
                self.board.is_later = False
                self._due_at = 0.0
            self._wake()
        if self._listener in ready:
            self._hear()

    def _hear(self) -> None:
        try:
            heard = self._listener.heard()
        except Exception as error:  # noqa: BLE001 - the driver's own errors, without importing it
            events.ours.warning("wakeup.lost: %s; workers poll until it is back.", error)
            self._listener.close()
            self.board.wakes = False
            self._listen_at = 0.0
            self._wake()
            return
        if self.plan.backend in heard:
            self._wake()
        if self.plan.backend + LATER in heard:
            # Whoever stored a job within the window after this word had no need to repeat it.
            self._due_at, self._look_again_at = 0.0, clock.uptime() + 2 * WINDOW

    def _wake(self) -> None:
        """Ring one worker that has nothing to do; it says when there is more than it can hold."""
        for place, wire in zip(self.board.places, self.wires, strict=True):
            if place.state == board.IDLE:
                wire.ring()
                return
        for place, wire in zip(self.board.places, self.wires, strict=True):
            if place.state == board.BUSY and not place.waiting:
                wire.ring()

    def _is_orphaned(self) -> bool:
        """Return whether the supervisor's end of the line is closed."""
        ready, _, _ = select.select([self.lifeline], [], [], 0)
        return bool(ready) and os.read(self.lifeline, 1) == b""

    def _bury_all(self) -> None:
        """Give back what the workers held, who died with their supervisor."""
        for place in self.board.places:
            if place.state == board.EMPTY or not place.pid:
                continue
            started = place.started()
            if not has_exited(place.pid, 0.0):
                send(place.pid, signal.SIGKILL)
                started = place.started()
            if has_exited(place.pid, 2.0):
                death = Death(
                    worker=place.worker, started=started, reason="its supervisor was killed",
                    is_charged=False,
                )  # fmt: skip
                coroner.bury(self.backend, death, self._lease)
