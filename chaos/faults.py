"""Faults: how each of the plan is done to the crew, the server and the lines between them."""

from __future__ import annotations

import heapq
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from chaos.crew import Feeder, Group, Proxy, children_of, is_alive, send
from chaos.plan import Fault


@dataclass(frozen=True, slots=True)
class Kill:
    """Who died of a kill, and when, by the wall clock that the database shares."""

    what: str
    pids: tuple[int, ...]
    at: float


@dataclass
class Done:
    """What was really done."""

    counts: Counter[str] = field(default_factory=Counter)
    kills: list[Kill] = field(default_factory=list)
    # Times in which a server was away or silent, or somebody stopped, by the wall clock.
    outages: list[tuple[float, float]] = field(default_factory=list)
    # When the last fault was over.
    last: float = 0.0


class Faults:
    """Does one fault after the other, and undoes what lasts."""

    def __init__(
        self, groups: list[Group], feeder: Feeder, server: Any, proxy: Proxy | None, lease: float
    ) -> None:
        self.groups, self.feeder, self.server, self.proxy = groups, feeder, server, proxy
        self.lease = lease
        self.done = Done()
        self._undoing: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._writers: list[subprocess.Popen[bytes]] = []
        self._paused: Counter[str] = Counter()

    def happen(self, fault: Fault) -> bool:
        """Let a fault happen to one of those that it could mean; False when there is none now."""
        dice = random.Random(fault.draw)
        does: dict[str, Callable[[Fault, random.Random], bool]] = {
            "kill": self._kill, "stop": self._stop, "server": self._restart, "cut": self._cut,
            "delay": self._delay, "hole": self._hole, "reset": self._reset, "crowd": self._crowd,
            "terminate": self._disturb, "cancel": self._disturb, "hold": self._hold,
        }  # fmt: skip
        if not does[fault.what](fault, dice):
            return False
        self.done.counts[f"{fault.what} {fault.whom}".strip()] += 1
        self.done.last = time.time()
        return True

    def undo_what_is_due(self) -> None:
        """End the faults whose time is over."""
        while self._undoing and self._undoing[0][0] <= time.monotonic():
            heapq.heappop(self._undoing)[2]()
            self.done.last = time.time()

    def calm(self) -> None:
        """End every fault that still lasts."""
        while self._undoing:
            heapq.heappop(self._undoing)[2]()
        if self.proxy is not None:
            self.proxy.tell("calm")
        for writer in self._writers:
            writer.kill()
            writer.wait()
        self.done.last = max(self.done.last, time.time())

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._undoing, (time.monotonic() + seconds, self._number, undo))

    def _whom(self, whom: str, dice: random.Random) -> list[int]:
        """Return the processes that are meant; none when there are none at this moment."""
        if whom == "feeder":
            process = self.feeder.process
            return [process.pid] if process is not None and process.poll() is None else []
        alive = [group for group in self.groups if group.is_alive]
        return self._members(dice.choice(alive), whom, dice) if alive else []

    def _members(self, group: Group, whom: str, dice: random.Random) -> list[int]:
        children = group.children
        if whom == "supervisor":
            return [group.pid]
        if whom == "group":
            return [group.pid, *children]
        # The keeper is forked before the workers; one that replaced it is younger than they are.
        workers = self._workers() & set(children)
        others = [pid for pid in children if pid not in workers]
        meant = sorted(workers) if whom == "worker" else others[:1]
        return [dice.choice(meant)] if meant else []

    def _workers(self) -> set[int]:
        """Return the processes that have a worker's row."""
        with suppress(*self.server.errors), self.server.connected() as line:
            cursor = line.cursor()
            cursor.execute("SELECT pid FROM once_worker WHERE stopped_at IS NULL")
            return {pid for (pid,) in cursor.fetchall()}
        return set()

    def _kill(self, fault: Fault, dice: random.Random) -> bool:
        pids = self._whom(fault.whom, dice)
        if fault.whom == "group":
            # Stopped first, so that none of them sees another die.
            for pid in pids:
                send(pid, signal.SIGSTOP)
        # The workers die with their supervisor.
        tied = children_of(pids[0]) if fault.whom == "supervisor" and pids else []
        at = time.time()
        for pid in pids:
            send(pid, signal.SIGKILL)
        if pids:
            self.done.kills.append(Kill(fault.whom, (*pids, *tied), at))
        return bool(pids)

    def _stop(self, fault: Fault, dice: random.Random) -> bool:
        """Stop somebody for a while; of two groups one is left to notice, unless it is a worker."""
        able = [group for group in self.groups if group.is_alive and not self._paused[group.name]]
        if not able or (fault.whom != "worker" and len(able) < len(self.groups)):
            return False
        group = dice.choice(able)
        pids = self._members(group, fault.whom, dice)
        for pid in pids:
            send(pid, signal.SIGSTOP)
        is_counted = fault.whom != "worker"

        def go_on() -> None:
            self._paused[group.name] -= is_counted
            for pid in pids:
                if is_alive(pid):
                    send(pid, signal.SIGCONT)

        if pids:
            self._paused[group.name] += is_counted
            self._later(fault.seconds, go_on)
            self.done.outages.append((time.time(), time.time() + fault.seconds))
            self.done.counts["stops longer than the lease"] += fault.seconds > self.lease
        return bool(pids)

    def _restart(self, fault: Fault, dice: random.Random) -> bool:
        began = time.time()
        self.server.stop(self.server.stops[fault.whom])
        time.sleep(dice.uniform(0, 1))
        self.server.start()
        self.done.outages.append((began, time.time()))
        return True

    def _cut(self, fault: Fault, dice: random.Random) -> bool:
        assert self.proxy is not None
        self.proxy.tell("cut", fault.whom)
        return True

    def _delay(self, fault: Fault, dice: random.Random) -> bool:
        assert self.proxy is not None
        self.proxy.tell("delay", round(dice.uniform(0.02, 0.3), 3), fault.seconds)
        return True

    def _hole(self, fault: Fault, dice: random.Random) -> bool:
        assert self.proxy is not None
        self.proxy.tell("hole", fault.seconds)
        self.done.outages.append((time.time(), time.time() + fault.seconds))
        return True

    def _reset(self, fault: Fault, dice: random.Random) -> bool:
        assert self.proxy is not None
        self.proxy.tell("reset")
        return True

    def _disturb(self, fault: Fault, dice: random.Random) -> bool:
        with suppress(*self.server.errors):
            return bool(self.server.disturb(fault.what, dice))
        return False

    def _crowd(self, fault: Fault, dice: random.Random) -> bool:
        crowd = ExitStack()
        try:
            crowd.enter_context(self.server.crowded())
        except self.server.errors:
            return False
        began = time.time()

        def leave() -> None:
            with suppress(*self.server.errors):
                crowd.close()
            self.done.outages.append((began, time.time()))

        self._later(fault.seconds, leave)
        return True

    def _hold(self, fault: Fault, dice: random.Random) -> bool:
        self._writers.append(self.server.hold(fault.seconds))
        self.done.outages.append((time.time(), time.time() + fault.seconds))
        return True
