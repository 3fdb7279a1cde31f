"""Where bodies run: threads for sync tasks, an event loop for async ones, so many of each at once.

Claims wait in an inbox that all threads take from, so a slow body never holds the ones behind it.
What has not started can be taken back at any moment. Each end goes to the outbox; nobody here asks
the database about jobs, but for the guarded start that `at_most_once` and suspects need.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any
from uuid import UUID

from django_once import clock, events
from django_once.backend import DatabaseBackend
from django_once.errors import OnceError
from django_once.processes import ends, hygiene, runner
from django_once.processes.board import Place
from django_once.processes.child import or_end_the_process
from django_once.processes.ends import Ended
from django_once.processes.running import Running
from django_once.sql.values import Attempt


class Slots:
    """The bodies of one worker."""

    def __init__(
        self, backend: DatabaseBackend, concurrency: int, place: Place,
        ended: Callable[[Ended], None], may_start: Callable[[], bool],
        is_doubted: Callable[[Attempt], bool], is_refused: Callable[[Attempt], bool],
    ) -> None:  # fmt: skip
        self.backend = backend
        self.concurrency = concurrency
        self._place = place
        self._ended = ended
        self._may_start = may_start
        self._is_doubted = is_doubted
        self._is_refused = is_refused
        self._inbox: SimpleQueue[Attempt] = SimpleQueue()
        self._awaiting: deque[Attempt] = deque()
        self._entries = deque(range(2 * concurrency))
        self._running: dict[int, Running] = {}
        self._threads: list[threading.Thread] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaited = 0
        self._held = 0
        self._counting = threading.Lock()
        hygiene.watch_new_connections()

    @property
    def waiting(self) -> int:
        """How many claims have not started."""
        return self._inbox.qsize() + len(self._awaiting)

    @property
    def running(self) -> list[Running]:
        """The bodies that were called and have not ended."""
        return list(self._running.values())

    @property
    def is_idle(self) -> bool:
        """Whether all that was handed over has ended, or was taken back.

        Counted, since what a thread has just taken from the inbox neither waits nor runs.
        """
        return not self._held

    def put(self, attempts: list[Attempt]) -> None:
        """Hand over claims, in the order in which they should start."""
        self._count(len(attempts))
        awaitable = False
        for attempt in attempts:
            if runner.is_awaitable(attempt):
                self._awaiting.append(attempt)
                awaitable = True
            else:
                self._inbox.put(attempt)
        if awaitable:
            self._event_loop().call_soon_threadsafe(self._await_more)
        wanted = min(self.concurrency, self._inbox.qsize() + len(self._running))
        while len(self._threads) < wanted:
            self._open()

    def take_back(self) -> list[Attempt]:
        """Return what has not started; none of it will."""
        found = []
        while True:
            try:
                found.append(self._inbox.get_nowait())
            except Empty:
                break
        while self._awaiting:
            try:
                found.append(self._awaiting.popleft())
            except IndexError:
                break
        self._count(-len(found))
        return found

    def ask(self, job: UUID, claim: UUID, why: OnceError) -> None:
        """Ask a body to end; nothing happens when it has ended meanwhile."""
        for running in self.running:
            if running.attempt.id == job and running.attempt.claim == claim:
                running.ask(why)

    def _open(self) -> None:
        name = f"once-slot-{len(self._threads)}"
        work = or_end_the_process(self._work)
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        """Run one body after the other; the thread lives as long as its process."""
        hygiene.begin()
        while True:
            attempt = self._inbox.get()
            entry = self._begin(attempt)
            try:
                # A context of its own: what a body activates (a language, a time zone) goes with
                # it.
                ended = copy_context().run(self._run, self._running[entry])
            finally:
                hygiene.clean()
            self._end(entry, ended)

    def _run(self, running: Running) -> Ended:
        attempt = running.attempt
        if not self._may_start() or self._is_refused(attempt):
            return ends.given_back(attempt)
        if self._must_ask(attempt) and not runner.has_started(self.backend, attempt):
            return ends.superseded(attempt)
        running.was_called = True
        return runner.run(self.backend, attempt, running)

    def _await_more(self) -> None:
        while self._awaiting and self._awaited < self.concurrency:
            try:
                attempt = self._awaiting.popleft()
            except IndexError:
                return
            self._awaited += 1
            task = asyncio.ensure_future(self._await(attempt))
            task.add_done_callback(self._one_awaited)

    def _one_awaited(self, _: Any) -> None:
        self._awaited -= 1
        self._await_more()

    async def _await(self, attempt: Attempt) -> None:
        entry = self._begin(attempt)
        if not self._may_start() or self._is_refused(attempt):
            self._end(entry, ends.given_back(attempt))
            return
        if self._must_ask(attempt):
            loop = asyncio.get_running_loop()
            started = await loop.run_in_executor(None, runner.has_started, self.backend, attempt)
            if not started:
                self._end(entry, ends.superseded(attempt))
                return
        running = self._running[entry]
        running.was_called = True
        self._end(entry, await runner.arun(self.backend, attempt, running))

    def _must_ask(self, attempt: Attempt) -> bool:
        """Return whether the start must be on record first: asked when the entry is on the board.

        In this order, since whoever doubts a claim marks the doubt before it reads the board.
        """
        return runner.needs_start(attempt) or self._is_doubted(attempt)

    def _begin(self, attempt: Attempt) -> int:
        entry = self._entries.popleft()
        over_at = clock.uptime() + attempt.timeout if attempt.timeout else 0.0
        self._place.begin(entry, attempt.id, attempt.claim, over_at)
        self._running[entry] = Running(attempt, self._may_start)
        return entry

    def _end(self, entry: int, ended: Ended) -> None:
        # The outcome is in the outbox before the entry is free: in between the job is held twice,
        # never not at all.
        self._ended(ended)
        self._place.end(entry)
        del self._running[entry]
        self._entries.append(entry)
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self._held += more

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            work = or_end_the_process(self._run_loop, self._loop)
            threading.Thread(target=work, name="once-loop", daemon=True).start()
        return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop for ever: a body may stop it, or leave it by a SystemExit of a child's."""
        while True:
            try:
                loop.run_forever()
            except BaseException as exception:  # noqa: BLE001 - a body's own, which it has seen too
                events.loop_left(exception)
