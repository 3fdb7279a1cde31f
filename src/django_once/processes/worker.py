"""The worker: claims jobs a little ahead of need, hands them to its slots, and gives back the rest.

Three kinds of threads share the work: this one claims, the slots run bodies, the settler ends
attempts. A claim is cheap by the hundred and a claimed job waits for nobody else, so the worker
claims ahead; but never more than its slots will have started within a fraction of a second, by
the durations it has seen. What waits longer than that all the same goes back, unburnt.

The worker trusts its lease until the time that the keeper last published, less a margin. Past it
nobody knows whether the jobs are still its own: it starts nothing until it is renewed.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
from collections import deque
from typing import Any, Final
from uuid import UUID

from django_once import clock, events, signals
from django_once.backend import DatabaseBackend
from django_once.definitions import registry
from django_once.definitions.channel import located
from django_once.models.job.claim import Walk
from django_once.models.job.expire import reconcile
from django_once.models.job.ready import promote, readmit_known
from django_once.models.worker import describe, register, stop
from django_once.processes import board, broadcaster, ends, limits, stops
from django_once.processes.ahead import AHEAD, less, room_for, wanted_ahead
from django_once.processes.board import Board, Place
from django_once.processes.child import Wire
from django_once.processes.ends import Ended
from django_once.processes.guards import Guards
from django_once.processes.persistence import Persistence
from django_once.processes.plan import Plan
from django_once.processes.settler import Settler
from django_once.processes.slots import Slots
from django_once.sql import own
from django_once.sql.values import Attempt, Holder
from django_once.wakeups.listen import WINDOW

# How much one duration moves the mean of those seen.
WEIGHT: Final = 0.1
# What has waited so long although slots should have been free goes back.
TOO_LONG: Final = 1.0
# Senders drop their wakeups for a while after each; that is looked for once, when it is over.
LATE: Final = WINDOW * 1.2
# Where something was found that nobody rang for, more may come: so often, and for so long.
WATCHFUL: Final = 0.15
STEP: Final = 0.02
# How much longer an idle worker that nothing wakes waits each time, up to POLL.
SLOWER: Final = 1.5
# How much less often than that a worker looks which something wakes.
UNHEARD: Final = 10
SIGN_OF_LIFE: Final = 1.0
# How long a thread keeps the interpreter that others wait for. Whoever claims or settles waits for
# it after each answer of the database, behind all slots; Python's own 5 ms are ten times as long.
SWITCH: Final = 0.0005
MARGIN: Final = 1 / 6

EXIT_DONE: Final = 0
EXIT_LOST: Final = 69
EXIT_RECYCLED: Final = 75


class Worker:
    """One process that runs attempts."""

    def __init__(
        self, plan: Plan, backend: DatabaseBackend, holder: Holder, supervisor: UUID,
        memory: Board, number: int, wire: Wire, keeper: Wire,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.backend = backend
        self.holder = holder
        self.supervisor = supervisor
        self.board = memory
        self.place: Place = memory.places[number]
        self.wire = wire
        self.keeper = keeper
        self.is_draining = False
        self._ended_before = self.place.ended
        self._share = less(plan.share_of(number), self._ended_before)
        self._claimed = 0
        self._walk = Walk(backend.settings.database, holder, plan.queues, plan.excluded)
        self._guards = Guards(backend)
        self._slots = Slots(
            backend, plan.concurrency, self.place, self._ended, self._is_trusted, self._is_doubted,
            self._is_refused,
        )  # fmt: skip
        self._settler = Settler(
            backend, self._slots, self._guards, self._tell_the_keeper, wire.ring
        )
        self._suspects: deque[Attempt] = deque()
        self._seconds_per_job = AHEAD
        self._sent: dict[UUID, float] = {}
        self._pause = STEP
        self._look_at = 0.0
        self._watchful_until = 0.0
        self._late_look_at = 0.0
        self._was_rung = False
        self._found_all = False
        self._is_asleep = False
        self._low_water = 0
        self._trusted_from = 0.0
        self._trust = backend.settings.lease.total_seconds() * (1 - MARGIN)
        self._waiting_since: float | None = None
        self._reconcile_at = 0.0
        # Apart: where no claim succeeds and all else does, claims become rarer all the same.
        self._claiming = Persistence(backend.settings.database, f"worker {holder.name}")
        self._persistence = Persistence(backend.settings.database, f"worker {holder.name}")

    def run(self) -> int:
        """Work until drained, lost or used up; return the exit status."""
        signal.signal(signal.SIGTERM, self._drain)
        limits.limit(self.backend.settings.database)
        own.enter()
        sys.setswitchinterval(SWITCH)
        if not self._join():
            return EXIT_DONE
        self._settler.start()
        if self.plan.hears:
            broadcaster.started(self.backend.settings, [*map(located, self.plan.hears)])
        status = EXIT_DONE
        while not self._is_over():
            if self.place.is_lost:
                return EXIT_LOST
            if self._is_too_large():
                events.worker_grown(self.holder.name, self.plan.max_memory)
                status = EXIT_RECYCLED
                self.is_draining = True
            self._turn()
            self._publish()
            self._sleep()
        self._leave()
        return status

    def _join(self) -> bool:
        """Register this worker and readmit what waited for its tasks; patient with the database."""
        settings = self.backend.settings
        known = sorted(registry.paths())
        described = describe(self.supervisor, self.plan.queues, known, self.plan.concurrency)
        while not self.is_draining:
            self.place.sign()
            self._trusted_from = clock.uptime()
            answered, _ = self._persistence.tried(
                lambda: register(settings.database, self.holder, settings.lease, **described)
            )
            if answered:
                self._persistence.tried(lambda: readmit_known(settings.database, known))
                self._tell(signals.worker_started)
                return True
            self._persistence.wait()
        return False

    def _drain(self, *_: object) -> None:
        self.is_draining = True
        self.wire.ring()

    def _is_over(self) -> bool:
        if not self._slots.is_idle or self._suspects or self._settler.unsettled:
            return False
        is_used_up = self._share is not None and self._claimed >= self._share
        return self.is_draining or is_used_up or (self.plan.batch and self._found_all)

    def _turn(self) -> None:
        """Give back what must not start here, then claim what fits and hand it over."""
        self.place.sign()
        if self.is_draining or self.place.is_condemned or not self._is_trusted():
            self._give_back([*self._slots.take_back(), *self._suspects])
            self._suspects.clear()
            # Nothing is looked for, so nothing may be due.
            self._look_at = max(self._look_at, time.monotonic() + STEP)
            return
        self._reconcile()
        if self._suspects:
            self._run_a_suspect_alone()
            return
        self._give_back_what_waits_too_long()
        room = self._room()
        if room > 0 and time.monotonic() >= self._look_at:
            self._claim(room)

    def _claim(self, room: int) -> None:
        # Asked before: a body that ends during the claim may have enqueued another job.
        is_last_look = self._is_last_look()
        sent = clock.uptime()
        answered, attempts = self._claiming.tried(lambda: self._walk.claim(room))
        now = time.monotonic()
        was_rung, self._was_rung = self._was_rung, False
        if not answered or attempts is None:
            self._look_at = now + self._claiming.pause
            # The claim may have committed: what it took stands as mine, and nobody here knows.
            self._reconcile_at = 0.0
            return
        if attempts:
            self._claimed += len(attempts)
            self._pause = STEP
            self._sent.update(dict.fromkeys(self._settler.expect(attempts), sent))
            if not was_rung or not self.board.wakes:
                self._watchful_until = now + WATCHFUL
            self._dispatch(attempts)
        if len(attempts) == room:
            # There may be more than this worker can hold: another may be idle.
            self._look_at = now
            self.keeper.ring()
            return
        self._look_at = self._next_look(now)
        if self._walk.has_lanes:
            self._look_at = min(self._look_at, now + max(self._walk.seconds_until_look, STEP))
        if is_last_look and not attempts:
            self._end_the_batch()

    def _is_last_look(self) -> bool:
        """Return whether a batch is done if nothing is found now, from the start of all lanes."""
        is_whole = not self._walk.has_lanes or not self._walk.seconds_until_look
        is_quiet = self._slots.is_idle and not self._settler.unsettled
        return self.plan.batch and is_whole and is_quiet

    def _end_the_batch(self) -> None:
        database = self.backend.settings.database
        answered, promoted = self._persistence.tried(lambda: promote(database))
        self._found_all = answered and not promoted
        self._look_at = 0.0

    def _next_look(self, now: float) -> float:
        """Return when to look again after not everything was taken that there was room for."""
        if now < self._watchful_until:
            return now + STEP
        return self._late_look_at if now < self._late_look_at else now + self._next_pause()

    def _next_pause(self) -> float:
        """Return seconds until the next look of an idle worker.

        Few where something wakes it; else ever fewer while nothing comes, up to POLL.
        """
        if self.plan.interval is not None:
            return max(self.plan.interval, STEP)
        poll = self.backend.settings.poll.total_seconds()
        if self.board.wakes:
            return poll * UNHEARD * random.uniform(0.9, 1.1)
        self._pause = min(poll, self._pause * SLOWER)
        return self._pause * random.uniform(0.9, 1.1)

    def _room(self) -> int:
        """Return how many jobs more this worker should claim now."""
        if self._settler.is_stuck:
            return 0
        wanted = wanted_ahead(self.plan.concurrency, self._seconds_per_job)
        self._low_water = wanted // 2
        room = room_for(
            wanted, self.plan.concurrency, len(self._slots.running), self._slots.waiting
        )
        return room if self._share is None else min(room, self._share - self._claimed)

    def _dispatch(self, attempts: list[Attempt]) -> None:
        stopped = [attempt for attempt in attempts if attempt.stopped_by]
        if stopped:
            attempts = [attempt for attempt in attempts if not attempt.stopped_by]
            attempts += self._let_through(stopped)
        suspects = [attempt for attempt in attempts if attempt.is_suspect]
        if suspects:
            # Only when it runs alone does its death prove anything.
            self._suspects.extend(suspects)
            attempts = [attempt for attempt in attempts if not attempt.is_suspect]
            self._give_back(attempts + self._slots.take_back())
            return
        self._slots.put(attempts)

    def _let_through(self, stopped: list[Attempt]) -> list[Attempt]:
        """Return those that may start although something stands against their task."""
        answered, found = self._persistence.tried(lambda: stops.judged(self.backend, stopped))
        if not answered or found is None:
            self._give_back(stopped)
            return []
        free, ended = found
        self._claimed -= len(ended)
        for one in ended:
            self._settler.put(one)
        return free

    def _run_a_suspect_alone(self) -> None:
        if self._slots.is_idle:
            self._slots.put([self._suspects.popleft()])

    def _give_back(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            self._claimed -= 1
            self._settler.put(ends.given_back(attempt))

    def _give_back_what_waits_too_long(self) -> None:
        now = time.monotonic()
        if not self._slots.waiting or len(self._slots.running) < self.plan.concurrency:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since > TOO_LONG:
            oldest = min((body.began for body in self._slots.running), default=now)
            if now - oldest > TOO_LONG:
                self._seconds_per_job = max(self._seconds_per_job, AHEAD)
                self._give_back(self._slots.take_back())
            self._waiting_since = None

    def _ended(self, ended: Ended) -> None:
        """Take the end of an attempt from its slot; called by whatever thread ran it."""
        self._guards.note(ended)
        ran = ended.outcome.ran if ended.outcome is not None else ended.ran
        if ran is not None:
            self._seconds_per_job += WEIGHT * (ran - self._seconds_per_job)
        self._settler.put(ended)
        if self._is_asleep and self._slots.waiting <= self._low_water:
            self._is_asleep = False
            self.wire.ring()

    def _tell_the_keeper(self) -> None:
        """Let the keeper look when the next job is due, now that this worker has stored one."""
        self.board.is_later = True
        self.keeper.ring()

    def _is_trusted(self) -> bool:
        """Return whether the lease certainly holds: by uptime since the renewal was sent."""
        trusted_from = max(self.board.renewed_at, self._trusted_from)
        return clock.uptime() < trusted_from + self._trust

    def _is_doubted(self, attempt: Attempt) -> bool:
        """Return whether this claim may have been given back while this process was silent."""
        doubted_until = self.place.doubted_until
        return doubted_until > 0.0 and self._sent.get(attempt.claim, 0.0) <= doubted_until

    def _is_refused(self, attempt: Attempt) -> bool:
        """Return whether the breaker of its task has opened since this was claimed."""
        return self._guards.refuses(attempt, self._sent.get(attempt.claim, 0.0))

    def _reconcile(self) -> None:
        """Give back what the database says is mine and nobody here knows of."""
        now = time.monotonic()
        if now < self._reconcile_at:
            return
        self._reconcile_at = now + self.backend.settings.lease.total_seconds() / 3
        database = self.backend.settings.database
        held = self._settler.claims_held()
        self._sent = {claim: sent for claim, sent in self._sent.items() if claim in held}
        self._persistence.tried(lambda: reconcile(database, self.holder.id, held))

    def _is_too_large(self) -> bool:
        # Whoever is too large from the start gets something done too, before the next one comes.
        if self.plan.max_memory is None or self.is_draining or not self._settler.ended:
            return False
        unit = 1 if sys.platform == "darwin" else 1024
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return used > self.plan.max_memory * 1024 * 1024

    def _publish(self) -> None:
        self.place.count(self._ended_before + self._settler.ended)
        self.place.hold(self._slots.waiting)
        if self.is_draining:
            self.place.become(board.DRAINING)
        else:
            self.place.become(board.IDLE if self._slots.is_idle else board.BUSY)

    def _sleep(self) -> None:
        """Wait for a wakeup, an ended body or the next look, whichever comes first."""
        if self._is_over():
            return
        now = time.monotonic()
        # A body that ends rings only when this thread would claim for it, or is waiting for it.
        # Said before the room is measured: one that ends in between would find nobody to ring.
        self._is_asleep = self._look_at <= now or self.is_draining or bool(self._suspects)
        seconds = self._look_at - now if self._room() > 0 else SIGN_OF_LIFE
        if self.is_draining or self._suspects or self._settler.unsettled:
            seconds = min(seconds, STEP)
        was_rung = self.wire.wait(min(seconds, SIGN_OF_LIFE))
        if was_rung:
            self._late_look_at = time.monotonic() + LATE
            if self._look_at > now:
                self._was_rung = True
                self._look_at = 0.0
                self._pause = STEP
        self._is_asleep = False

    def _leave(self) -> None:
        self._settler.finish()
        while self._settler.is_alive():
            self.place.sign()
            self._settler.join(SIGN_OF_LIFE)
        self._publish()
        self.place.become(board.LEAVING)
        database = self.backend.settings.database
        answered, _ = self._persistence.tried(lambda: stop(database, self.holder.id))
        if answered:
            self.place.leave()
        self._tell(signals.worker_stopped)

    def _tell(self, signal: Any) -> None:
        holder = self.holder
        signals.tell(signal, type(self.backend), worker=str(holder.id), name=holder.name)
