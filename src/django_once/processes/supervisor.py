"""The supervisor: forks, reaps and signals; one thread, and never a word with the database.

It forks one keeper, which renews the leases, the workers, which run attempts, and a scheduler,
which fires schedules. It is the one who sees a child die, so it knows the reason, and reads on the
board which bodies the child had called; a coroner, forked for the occasion, gives the jobs back at
once. It ends a worker whose body runs past its timeout, and a process that is wedged.

The first signal drains: workers take nothing more, hand back what has not started and finish
what runs. The second, or the end of the drain time, kills them and gives everything back.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import Final
from uuid import uuid4

from django_once import clock, events
from django_once.backend import DatabaseBackend
from django_once.crash import crash_point
from django_once.models.worker import fresh_holder
from django_once.processes import board, coroner, farewell, systemd
from django_once.processes.board import Board
from django_once.processes.child import EX_CONFIG, Wire, fork, has_ended, send, show_stacks
from django_once.processes.coroner import Death
from django_once.processes.health import Health
from django_once.processes.keeper import Keeper
from django_once.processes.plan import Plan
from django_once.processes.reload import Code
from django_once.processes.restarts import COUNTS_AS_QUICK, LONGEST_PAUSE, Restarts
from django_once.processes.scheduler import Scheduler
from django_once.processes.watch import Verdict, next_look, silence, verdict
from django_once.processes.worker import EXIT_DONE, EXIT_RECYCLED, Worker

# How long the supervisor sleeps when nothing wakes it: bodies begin without telling it.
LOOK: Final = 0.5
LAST_WORDS: Final = 5.0


class Supervisor:
    """One command's processes, and what becomes of them."""

    def __init__(self, plan: Plan, backend: DatabaseBackend) -> None:
        self.plan = plan
        self.backend = backend
        self.id = uuid4()
        self.board = Board(plan.processes, plan.concurrency)
        self.wires = [Wire() for _ in range(plan.processes)]
        self.keeper_wire = Wire()
        self.signals = Wire()
        self.lifeline, self._end_of_lifeline = os.pipe()
        self._children: dict[int, int] = {}
        # Which place is to be filled again when a coroner has ended, if it is to wait for that.
        self._coroners: dict[int, int | None] = {}
        self._keeper: int | None = None
        self._keeper_since = 0.0
        self._keeper_at: float | None = None
        self._killed_keeper: int | None = None
        self._scheduler: int | None = None
        self._scheduler_at: float | None = 0.0 if plan.scheduler and not plan.batch else None
        self._killed: dict[int, Verdict] = {}
        self._restarts = Restarts()
        self._told: set[int] = set()
        self._stops = 0
        self._stopped_at = self._said_at = 0.0
        self._forced = False
        self._cut = 0
        self._status = 0
        self._is_told_ready = False
        self._lease = backend.settings.lease.total_seconds()
        self.code = Code(plan) if plan.reload else None
        self._health = Health(plan.health_port, self.board, backend) if plan.health_port else None
        self.must_reload = False

    def run(self) -> int:
        """Supervise until told to stop and all are gone; return the exit status."""
        self._listen_to_signals()
        self._start_keeper()
        self._await_keeper()
        if not self._stops:
            for number in range(self.plan.processes):
                self._start_worker(number)
        while self._children or ((self._restarts or self._is_waited_for()) and not self._stops):
            self._turn()
        self._finish()
        if self._status != EX_CONFIG and not self.must_reload:
            print(farewell.stopped(self.plan, self.board, self._cut), flush=True)
        return self._status

    def _turn(self) -> None:
        self._wait(self._seconds_until_due())
        self._reap()
        self._restart_what_is_due()
        self._end_what_is_over()
        if not self._is_told_ready and self._are_all_at_work():
            self._is_told_ready = True
            systemd.tell("READY=1")
        is_late = time.monotonic() > self._stopped_at + self.plan.drain_timeout
        if self._stops and not self._forced and (self._stops > 1 or is_late):
            self._force()
        if self._stops:
            self._ask_to_drain()
            self._say_what_is_waited_for()
        elif self.code is not None:
            self.code.look()

    def _say_what_is_waited_for(self) -> None:
        bodies = sum(len(place.started()) for place in self.board.places)
        if bodies and self._stops == 1 and self._said_at != self._stopped_at:
            print(farewell.stopping(self.plan, bodies), flush=True)
        self._said_at = self._stopped_at

    def _seconds_until_due(self) -> float:
        """Return how long to sleep: until something is due, and at most until the next look."""
        now = time.monotonic()
        moments = [at - now for at in self._restarts.moments]
        if self._keeper_at is not None:
            moments.append(self._keeper_at - now)
        if self._scheduler_at is not None and not self._stops:
            moments.append(self._scheduler_at - now)
        if self._stops and not self._forced:
            moments.append(self._stopped_at + self.plan.drain_timeout - now)
        uptime = clock.uptime()
        moments += [next_look(place.started(), uptime) for place in self.board.places]
        return max(0.0, min(LOOK, *moments))

    def _are_all_at_work(self) -> bool:
        at_work = (board.IDLE, board.BUSY, board.DRAINING)
        return all(place.state in at_work for place in self.board.places)

    def _wait(self, seconds: float) -> None:
        lines: list[Wire | Health] = [self.signals]
        if self._health is not None:
            lines.append(self._health)
        with suppress(InterruptedError):
            ready, _, _ = select.select(lines, [], [], seconds)
            if self.signals in ready:
                self.signals.clear()
            if self._health is not None and self._health in ready:
                self._health.answer()

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Who was started with nohup asked to outlive the terminal.
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGTERM:
                signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: self.signals.ring())
        signal.signal(signal.SIGQUIT, self._show_stacks)

    def _show_stacks(self, *_: object) -> None:
        """Print the stacks of all threads of all these processes."""
        show_stacks("supervisor", os.getpid())
        show_stacks("keeper", self._keeper)
        show_stacks("scheduler", self._scheduler)
        for pid, number in self._children.items():
            show_stacks(f"worker {self._name_of(number)}", pid)

    def _stop(self, *_: object) -> None:
        """Drain at the first call; at the second, do not wait for bodies."""
        self.signals.ring()
        if self.must_reload:
            # It drains already, but to start anew: now it is to end.
            self.must_reload = False
            return
        self._stops += 1
        if self._stops == 1:
            self._drain()

    def _give_way(self) -> None:
        """Drain and start anew; a signal that comes at any point of this means: drain and end."""
        self.must_reload = True
        if self._stops:
            self.must_reload = False
            return
        self._stops = 1
        self._drain()

    def _drain(self) -> None:
        self._stopped_at = time.monotonic()
        if self._health is not None:
            self._health.is_stopping = True
        systemd.tell("STOPPING=1")
        self._ask_to_drain()

    def _ask_to_drain(self) -> None:
        """Tell each child once; one that was just being forked is told at the next turn."""
        for pid in (*self._children, self._scheduler):
            if pid is not None and pid not in self._told:
                self._told.add(pid)
                send(pid, signal.SIGTERM)

    def _force(self) -> None:
        self._forced = True
        self._status = 1
        for pid in self._children:
            send(pid, signal.SIGKILL)

    def _start_keeper(self) -> None:
        def keep() -> int:
            self._settle_apart()
            return Keeper(
                self.plan, self.backend, self.board, self.wires, self.keeper_wire, self.lifeline
            ).run()

        self._keeper_since = clock.uptime()
        self._keeper, self._keeper_at = fork(keep, tied=False), None

    def _keeper_ended(self, pid: int, status: int) -> None:
        """Start another: at once, but after a pause where it died young."""
        events.process_died("keeper", pid, coroner.reason_of(status))
        self._keeper = None
        is_young = clock.uptime() - self._keeper_since < COUNTS_AS_QUICK
        self._keeper_at = time.monotonic() + (LONGEST_PAUSE if is_young else 0.0)

    def _settle_apart(self) -> None:
        """Leave to the supervisor what is its own, in a child."""
        os.close(self._end_of_lifeline)
        if self._health is not None:
            self._health.close()

    def _await_keeper(self) -> None:
        """Wait until the keeper has found the database as it must be."""
        while not self.board.is_ready and not self._stops:
            self._wait(LOOK)
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                continue
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == EX_CONFIG:
                self._keeper = None
                self._status = EX_CONFIG
                self._stops = 1
                return
            self._keeper_ended(pid, status)
            self._wait(LONGEST_PAUSE)
            self._start_keeper()

    def _start_worker(self, number: int) -> None:
        holder = fresh_holder(self._name_of(number), self.plan.backend)
        place = self.board.places[number]
        place.take(holder.id)

        def work() -> int:
            self._settle_apart()
            return Worker(
                self.plan, self.backend, holder, self.id, self.board, number,
                self.wires[number], self.keeper_wire,
            ).run()  # fmt: skip

        pid = fork(work)
        crash_point("worker.forked")
        place.settle_in(pid)
        self._children[pid] = number
        self._restarts.filled(number)

    def _name_of(self, number: int) -> str:
        name = self.plan.name if self.plan.processes == 1 else f"{self.plan.name}-{number + 1}"
        return name[:64]

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._child_ended(pid, status)

    def _child_ended(self, pid: int, status: int) -> None:
        if pid == self._keeper:
            self._keeper_ended(pid, status)
        elif pid == self._scheduler:
            self._scheduler_ended(pid, status)
        elif pid in self._coroners:
            number = self._coroners.pop(pid)
            if number is not None:
                self._restarts.at_once(number)
        elif self.code is not None and self.code.is_rehearsed_by(pid):
            if self.code.may_be_loaded(status):
                self._give_way()
        elif pid in self._children:
            self._worker_ended(pid, self._children.pop(pid), status)

    def _start_scheduler(self) -> None:
        """Fork the loop that fires schedules, apart from whoever renews the leases."""

        def tick() -> int:
            self._settle_apart()
            return Scheduler(self.backend.settings.database).run()

        self._scheduler, self._scheduler_at = fork(tick), None

    def _scheduler_ended(self, pid: int, status: int) -> None:
        self._scheduler = None
        if not self._stops:
            events.process_died("scheduler", pid, coroner.reason_of(status))
            self._scheduler_at = time.monotonic() + LONGEST_PAUSE

    def _worker_ended(self, pid: int, number: int, status: int) -> None:
        place = self.board.places[number]
        code = os.waitstatus_to_exitcode(status)
        killed = self._killed.pop(pid, Verdict())
        was_orderly = place.state == board.EMPTY
        if not was_orderly:
            self._worker_died(pid, number, status, killed)
        place.leave()
        if self._stops or code == EXIT_DONE or (self.plan.batch and not was_orderly):
            return
        if killed.overran:
            self._restarts.at_once(number)
        else:
            self._restarts.after_an_end(number, is_orderly=code == EXIT_RECYCLED)

    def _worker_died(self, pid: int, number: int, status: int, killed: Verdict) -> None:
        place = self.board.places[number]
        started = place.started()
        reason = killed.reason or coroner.reason_of(status)
        if self._forced:
            reason = "was stopped before its bodies had ended"
            self._cut += len(started)
        # Who is told to stop before it could listen just goes.
        elif not self._stops or os.waitstatus_to_exitcode(status) != -signal.SIGTERM:
            name = f"worker {self._name_of(number)} ({place.worker})"
            events.process_died(name, pid, reason)
        is_charged = not self._forced and not killed.is_death
        death = Death(
            worker=place.worker, started=started, reason=reason, is_charged=is_charged,
            overran=killed.overran,
        )  # fmt: skip
        self._bury(death, refill=number if self.plan.batch else None)

    def _is_waited_for(self) -> bool:
        """Return whether a place of a batch is to be filled again when its dead are buried.

        What they give back is due: whoever looked before would find nothing, and end.
        """
        return any(number is not None for number in self._coroners.values())

    def _bury(self, death: Death, *, refill: int | None) -> None:
        def look() -> int:
            self._settle_apart()
            coroner.bury(self.backend, death, self._lease)
            self.keeper_wire.ring()
            return 0

        self._coroners[fork(look)] = refill

    def _restart_what_is_due(self) -> None:
        now = time.monotonic()
        if self._keeper_at is not None and now >= self._keeper_at:
            self._start_keeper()
        if self._stops:
            return
        for number in self._restarts.due():
            self._start_worker(number)
        if self._scheduler_at is not None and now >= self._scheduler_at:
            self._start_scheduler()

    def _end_what_is_over(self) -> None:
        """Kill a worker whose body runs past its hard timeout, and a process that is wedged."""
        now = clock.uptime()
        for pid, number in self._children.items():
            if pid in self._killed:
                continue
            place = self.board.places[number]
            found = verdict(place.started(), place.seen_at, now, self._lease)
            if place.is_condemned != found.is_condemned:
                place.condemn(found.is_condemned)
                self.wires[number].ring()
            if found.is_death:
                self._killed[pid] = found
                send(pid, signal.SIGKILL)
        if self._keeper is not None and self._keeper != self._killed_keeper:
            seen_at = max(self.board.kept_at, self._keeper_since)
            if now - seen_at > silence(self._lease):
                self._killed_keeper = self._keeper
                send(self._keeper, signal.SIGKILL)

    def _finish(self) -> None:
        """Let the coroners end, then the keeper."""
        until = time.monotonic() + LAST_WORDS
        while self._coroners and time.monotonic() < until:
            self._wait(LOOK)
            self._reap()
        for pid in (*self._coroners, self._scheduler):
            if pid is not None:
                send(pid, signal.SIGKILL)
        keeper, self._keeper = self._keeper, None
        os.close(self._end_of_lifeline)
        if keeper is not None:
            until = time.monotonic() + LAST_WORDS
            while not has_ended(keeper) and time.monotonic() < until:
                self._wait(LOOK)
            send(keeper, signal.SIGKILL)
