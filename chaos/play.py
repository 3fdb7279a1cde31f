"""One run: a database, a crew, a storm of faults, a calm in which all must end, and the audit."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from chaos import history
from chaos.crew import Feeder, Group, Proxy, Stage, send
from chaos.errors import Refusal
from chaos.faults import Done, Faults
from chaos.plan import Fault, planned
from chaos.servers.durable import harness
from chaos.verifier.audit import Audit, audited
from chaos.verifier.facts import Facts
from chaos.wish import GROUPS, PROCESSES, Act, Wish

TICK = 0.02
SHOW_EVERY = 5.0
SECONDS_TO_JOIN = 60.0
SECONDS_TO_LEAVE = 45.0
# Beside two leases and sweeps, what the work that is left may take after the last fault.
WORK = 45.0
ENCORE = 15.0


class Play:
    """The storm and the calm of one run."""

    def __init__(
        self, wish: Wish, stage: Stage, server: Any, proxy: Proxy | None, say: Callable[..., None]
    ) -> None:
        self.wish, self.server, self.say = wish, server, say
        self.groups = [Group(stage, f"group-{number + 1}") for number in range(GROUPS)]
        self.feeder = Feeder(stage, wish)
        self.faults = Faults(self.groups, self.feeder, server, proxy, wish.lease)
        self.complaints: list[str] = []
        self.stage = stage
        self.drain = 0.0
        self._began = self._show_at = self._count_at = self._ordered_at = 0.0
        self._orders = -1

    def run(self) -> None:
        """Play it to its end; what did not end as it must is among the complaints."""
        for group in self.groups:
            group.start()
        self._await_workers()
        self._began = time.monotonic()
        waiting = planned(self.wish)
        for act in self.wish.acts:
            self._storm(act, waiting)
        self.faults.calm()
        self._encore()
        self._calm_down()
        self._leave()

    def _await_workers(self) -> None:
        until = time.monotonic() + SECONDS_TO_JOIN
        while True:
            with self.server.connected() as line:
                cursor = line.cursor()
                cursor.execute("SELECT count(*) FROM once_worker")
                if cursor.fetchone()[0] >= GROUPS * PROCESSES:
                    return
            dead = [group for group in self.groups if not group.is_alive]
            if dead or time.monotonic() > until:
                said = (dead or self.groups)[0].last_words
                raise Refusal(f"The workers did not start:\n{said}")
            time.sleep(0.1)

    def _storm(self, act: Act, waiting: list[Fault]) -> None:
        """Feed and disturb until the act is over and all its orders are there."""
        until = self.seconds + act.seconds
        self.feeder.start(act, self._began + until)
        again: list[Fault] = []
        while self.seconds < until or self.feeder.status != 0:
            if self.seconds < until:
                due = [one for one in waiting if one.at <= self.seconds]
                waiting[:] = [one for one in waiting if one not in due]
                # Who was not there, or had to be left alone, is looked for again.
                again = [one for one in again + due if not self.faults.happen(one)]
            elif not self._is_feeding():
                self.complaints.append(f"No order came for {WORK:.0f} s, and some are missing.")
                return
            self._tend(act, until)

    @property
    def seconds(self) -> float:
        """How long the play has lasted."""
        return time.monotonic() - self._began

    def _tend(self, act: Act | None, until: float = 0.0) -> None:
        """Let a moment pass; start again whoever is dead, as a host's supervisor would."""
        time.sleep(TICK)
        self.faults.undo_what_is_due()
        for group in self.groups:
            if not group.is_alive:
                group.start()
        if act is not None and self.feeder.status:
            self.feeder.start(act, self._began + until)
        if self.seconds >= self._show_at:
            self._show_at = self.seconds + SHOW_EVERY
            self.say(f"  {self.seconds:5.0f} s  {self._standing()}")

    def _standing(self) -> str:
        try:
            counts = self._counts()
        except self.server.errors as error:
            return f"no answer ({type(error).__name__})"
        return " · ".join(f"{count:,} {name.lower()}" for name, count in sorted(counts.items()))

    def _counts(self) -> dict[str, int]:
        with self.server.connected() as line:
            cursor = line.cursor()
            cursor.execute("SELECT status, count(*) FROM once_job GROUP BY status")
            return dict(cursor.fetchall())

    def _is_feeding(self) -> bool:
        """Return whether orders still come: on a slow machine the last of them come late."""
        if self.seconds < self._count_at:
            return True
        self._count_at = self.seconds + 1.0
        with suppress(*self.server.errors), self.server.connected() as line:
            cursor = line.cursor()
            cursor.execute("SELECT count(*) FROM chaos_order")
            (orders,) = cursor.fetchone()
            if orders != self._orders:
                self._orders, self._ordered_at = orders, self.seconds
        return self.seconds < self._ordered_at + WORK

    def _encore(self) -> None:
        """Let answers to claims be lost until one was given back by the worker that it was for.

        Whether such a worker lives long enough in a short storm is luck. Series and schedules go
        on, so that there is always somebody who claims.
        """
        until = self.seconds + ENCORE
        while self.faults.proxy and self.seconds < until and not self._has_reconciled():
            self.faults.happen(Fault(0.0, "cut", "claim answer", 0.0, 0.0))
            pause = self.seconds + self.wish.lease
            while self.seconds < pause:
                self._tend(None)
        self.faults.calm()

    def _has_reconciled(self) -> bool:
        with self.server.connected() as line:
            cursor = line.cursor()
            cursor.execute(
                "SELECT count(*) FROM chaos_history h JOIN once_worker w ON w.id = h.worker_was "
                "WHERE h.was = 'RUNNING' AND h.claim IS NULL AND h.writer = w.pid"
            )
            return bool(cursor.fetchone()[0])

    def _calm_down(self) -> None:
        """Wait until everything has ended, which it must within its bound."""
        began = time.time()
        bound = 2 * (self.wish.lease + self.wish.sweep) + WORK
        while time.time() < began + bound:
            self._tend(None)
            if not self._is_anything_open():
                break
        else:
            self.complaints.append(f"Not all jobs had ended {bound:.0f} s after the last fault.")
        self.drain = time.time() - self.faults.done.last

    def _is_anything_open(self) -> bool:
        """Return whether an order's job has not ended; what goes on by itself never does."""
        with self.server.connected() as line:
            cursor = line.cursor()
            cursor.execute(
                "SELECT count(*) FROM once_job WHERE status IN ('READY', 'RUNNING') "
                "AND generation = 0 AND id NOT IN "
                "(SELECT job FROM once_execution WHERE job IS NOT NULL)"
            )
            return bool(cursor.fetchone()[0])

    def _leave(self) -> None:
        """Stop everybody the polite way, and see that nobody is left."""
        for group in self.groups:
            group.process.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
        for group in self.groups:
            status = group.status_within(SECONDS_TO_LEAVE)
            if status != 0:
                self.complaints.append(f"{group.name} did not drain: its status is {status}.")
        left = self.stage.left_over()
        if left:
            self.complaints.append(f"Processes are left over: {left}.")
        for pid in left:
            send(pid, signal.SIGKILL)


def played(wish: Wish, say: Callable[..., None], *, keep: bool) -> Audit:
    """Play one run and return what its books say."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="once-chaos-", dir="/tmp"))
        if not keep:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
        server = stack.enter_context(server_for(wish.database, directory))
        proxy = None
        if server.speaks:
            proxy = Proxy(directory, server.speaks, server.socket)
            stack.callback(proxy.end)
        settings = server.settings(proxy.port if proxy else 0)
        stage = Stage(directory, uuid4().hex, settings, wish.lease)
        stack.callback(clear_away, stage)
        say(f"  {server.title}")
        stage.manage("migrate", "--verbosity", "0")
        history.install(server)
        play = Play(wish, stage, server, proxy, say)
        play.run()
        return audited(
            wish, play.drain, facts_of(server, stage, play.faults.done, proxy), play.complaints
        )


def facts_of(server: Any, stage: Stage, done: Done, proxy: Proxy | None) -> Facts:
    """Return all that was written down of a run."""
    with server.connected() as line:
        return Facts.read(
            line,
            ledger=stage.ledger,
            logs=sorted(stage.directory.glob("group-*.log")),
            cuts=proxy.said() if proxy else [],
            done=done,
        )


def clear_away(stage: Stage) -> None:
    """Leave no process behind, whatever happened."""
    for pid in stage.left_over():
        send(pid, signal.SIGKILL)


@contextmanager
def server_for(database: str, directory: Path) -> Iterator[Any]:
    """Give a database of the run's own."""
    if database == "sqlite":
        from chaos.servers.sqlite import File  # noqa: PLC0415

        yield File(directory)
        return
    try:
        if database == "postgresql":
            from chaos.servers.postgresql import Server  # noqa: PLC0415
        else:
            from chaos.servers.mariadb import Server  # type: ignore[assignment] # noqa: PLC0415
    except ImportError as error:
        raise Refusal(f"The driver of {database} is missing: {error}.") from error
    with harness() as found:
        yield Server(found)
