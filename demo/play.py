"""The play: orders come in, workers work, and by the clock somebody is killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.cast import PROJECT, Host, Web, slay, surroundings
from demo.screen import Screen
from demo.stage import Database, Refusal
from demo.story import ACTS, Doomed, Story, Victim

HOSTS: Final = ("north", "south")
PROCESSES_OF_A_HOST: Final = 2
TICK: Final = 0.1
PATIENCE: Final = 60.0
SECONDS_TO_DRAIN: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    db: str
    orders: int
    seconds: float
    keep: bool
    json: bool


@dataclass(frozen=True, slots=True)
class Busy:
    """A worker process and how many jobs it holds."""

    id: str
    name: str
    pid: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Jobs whose holder was killed, until somebody has taken them."""

    whose: str
    workers: frozenset[str]
    at: float


class Play:
    """One play; leaving its with-block leaves no process behind."""

    def __init__(self, wish: Wish, database: Database, directory: Path, screen: Screen) -> None:
        around = surroundings(database.url, directory)
        self.wish = wish
        self.books = database.books
        self.screen = screen
        self.story = Story()
        self._around = around
        self._directory = directory
        self._web = Web(around, directory)
        self._hosts = [Host(name, PROCESSES_OF_A_HOST, around, directory) for name in HOSTS]
        self._acts = [(part * wish.seconds, victim) for part, victim in ACTS]
        self._taken: list[Taken] = []
        self._is_holding = False
        self._all_placed = False
        self._dice = random.Random()

    def __enter__(self) -> Play:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in (self._web, *self._hosts):
            actor.kill_all()

    def migrate(self) -> None:
        """Make the tables, as a deploy does."""
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "manage.py", "migrate", "--verbosity", "0"],
            cwd=PROJECT, env=self._around, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise Refusal(f"manage.py migrate failed:\n{made.stderr.strip()}")

    def run(self) -> Story:
        """Play it until every order is charged and every receipt sent; return what happened."""
        self._raise_the_curtain()
        orders = charges = 0
        is_open = True
        while is_open:
            time.sleep(TICK)
            self._hear_the_web()
            self._restart_the_dead()
            self._play_the_next_act()
            self._watch_the_taken()
            orders, charges, open_jobs = self._counts()
            self._show(orders, charges, open_jobs)
            is_over = self._all_placed and not open_jobs and not self._taken and not self._acts
            is_open = not is_over and not self._is_too_late(orders, charges, open_jobs)
        self._show(orders, charges, 0, is_last=True)
        self._drop_the_curtain()
        self.story.seconds = self.screen.seconds
        return self.story

    def _raise_the_curtain(self) -> None:
        with self.screen.step("2 hosts with 2 worker processes each, 1 web process"):
            for host in self._hosts:
                host.start()
            self._web.open(self.wish.orders, self.wish.orders / self.wish.seconds)
            self._await_first_lines()
        self.screen.say(f"    {self._first_line(self._hosts[0])}")
        self.screen.say()
        self.screen.begin()

    def _await_first_lines(self) -> None:
        until = time.monotonic() + PATIENCE
        while not all(self._first_line(host) for host in self._hosts):
            if time.monotonic() > until or not all(host.is_alive for host in self._hosts):
                said = self._hosts[0].log.read_text(errors="replace").splitlines()
                raise Refusal("\n    ".join(["The workers did not start:", *said[-5:]]))
            time.sleep(TICK / 2)

    def _first_line(self, host: Host) -> str:
        lines = host.log.read_text(errors="replace").splitlines() if host.log.exists() else []
        return next((line for line in lines if line.startswith("django-once ")), "")

    def _hear_the_web(self) -> None:
        for word, *rest in self._web.words():
            if word == "done":
                self._all_placed = True
            elif word == "held":
                self._kill_the_web(Doomed(int(rest[0]), rest[1]))

    def _kill_the_web(self, doomed: Doomed) -> None:
        """Kill the web process, which has written an order and a job and not committed them."""
        pid = self._web.pid
        self._web.kill()
        self.story.killed_one("web")
        self.story.doomed.append(doomed)
        self._is_holding = False
        there = self.books.rows(f"SELECT 1 FROM shop_order WHERE number = {doomed.number}")
        found = "is there" if there else "is absent"
        self.screen.tell(
            f"✂ kill -9 web (pid {pid}) between INSERT and COMMIT: order {doomed.number} {found}"
        )

    def _restart_the_dead(self) -> None:
        for host in self._hosts:
            if not host.is_alive:
                host.start()
        if not self._web.is_alive:
            left = self.wish.seconds - self.screen.seconds
            ((there,),) = self.books.rows("SELECT count(*) FROM shop_order")
            missing = self.wish.orders - int(there)
            self._all_placed = False
            self._web.open(self.wish.orders, max(1.0, missing / max(0.5, left)))

    def _play_the_next_act(self) -> None:
        if not self._acts or self.screen.seconds < self._acts[0][0]:
            return
        victim = self._acts[0][1]
        if victim == "web":
            if not self._is_holding and self._web.is_alive:
                self._is_holding = True
                self._web.hold()
                self._acts.pop(0)
        elif self._kill(victim) or self._all_placed:
            # When there is no more work to hit, the act is left out.
            self._acts.pop(0)

    def _kill(self, victim: Victim) -> bool:
        """Kill a worker that is busy, or the host or supervisor of one; False while none is."""
        busy = self._busy()
        if not busy:
            return False
        one = self._dice.choice(busy)
        if victim == "worker":
            self._tell_of_a_kill(f"worker {one.name} (pid {one.pid})", victim, [one])
            slay(one.pid)
            return True
        host = next(host for host in self._hosts if one.name.startswith(host.name))
        its = [each for each in busy if each.name.startswith(host.name)]
        if victim == "supervisor":
            self._tell_of_a_kill(f"supervisor {host.name} (pid {host.pid})", victim, its)
            host.kill()
        else:
            self._tell_of_a_kill(f"host {host.name}, all its processes at once", victim, its)
            host.kill_all()
        return True

    def _tell_of_a_kill(self, whom: str, victim: Victim, busy: list[Busy]) -> None:
        jobs = sum(each.jobs for each in busy)
        self.story.killed_one(victim, jobs)
        ids = frozenset(each.id for each in busy)
        self._taken.append(Taken(whom.split(" (")[0].split(",")[0], ids, time.monotonic()))
        self.screen.tell(f"✂ kill -9 {whom} while it held {jobs} job{'s' * (jobs != 1)}")

    def _busy(self) -> list[Busy]:
        """Return the workers that hold jobs now, as their rows say."""
        rows = self.books.rows(
            "SELECT w.id, w.name, w.pid, count(*) FROM once_worker w "
            "JOIN once_job j ON j.worker = w.id WHERE j.status = 'RUNNING' "
            "AND w.lost_at IS NULL AND w.stopped_at IS NULL GROUP BY w.id, w.name, w.pid"
        )
        return [Busy(str(id), name, pid, jobs) for id, name, pid, jobs in rows]

    def _watch_the_taken(self) -> None:
        """Say when no job is held by the dead any more."""
        if not self._taken:
            return
        holders = {
            str(id)
            for (id,) in self.books.rows(
                "SELECT DISTINCT worker FROM once_job WHERE status = 'RUNNING'"
            )
        }
        for taken in list(self._taken):
            if not taken.workers & holders:
                self._taken.remove(taken)
                passed = time.monotonic() - taken.at
                self.screen.tell(f"↺ the jobs of {taken.whose} were taken back in {passed:.1f} s")

    def _counts(self) -> tuple[int, int, int]:
        ((orders, charges, open_jobs),) = self.books.rows(
            "SELECT (SELECT count(*) FROM shop_order), (SELECT count(*) FROM shop_charge), "
            "(SELECT count(*) FROM once_job WHERE status IN ('READY', 'RUNNING'))"
        )
        return int(orders), int(charges), int(open_jobs)

    def _show(self, orders: int, charges: int, open_jobs: int, *, is_last: bool = False) -> None:
        dots = " ".join("●" if host.is_alive else "✖" for host in self._hosts)
        text = (
            f"{charges:,}/{self.wish.orders:,} charged · {orders:,} placed · "
            f"{open_jobs:,} jobs open · hosts {dots}"
        )
        self.screen.progress(charges, self.wish.orders, text, is_last=is_last)

    def _is_too_late(self, orders: int, charges: int, open_jobs: int) -> bool:
        if self.screen.seconds < self.wish.seconds + PATIENCE:
            return False
        self.story.complaints.append(
            f"After {self.screen.seconds:.0f} s there are {orders} orders, {charges} charges and "
            f"{open_jobs} open jobs: the play was broken off."
        )
        return True

    def _drop_the_curtain(self) -> None:
        """Stop everybody the polite way, and see whether that ends well."""
        for host in self._hosts:
            host.ask_to_end()
        for host in self._hosts:
            status = host.status_within(SECONDS_TO_DRAIN)
            if status != 0:
                self.story.complaints.append(f"Host {host.name} did not drain: status {status}.")
        self._web.kill_all()
