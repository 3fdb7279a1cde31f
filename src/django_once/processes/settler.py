"""The outbox: ended attempts go to the database in batches, as large as the last commit was long.

No outcome waits on purpose. While one batch commits the next one gathers, so an idle worker
settles at once and a busy one by the hundred. An answer that was lost is asked for: the same
batch is sent again under the same claims, and what does not come back is looked up by nonce.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Final
from uuid import UUID

from django_once import counting, events, signals
from django_once.backend import DatabaseBackend
from django_once.crash import crash_point
from django_once.definitions.options import EXACTLY_ONCE
from django_once.models import Job
from django_once.models.figure import write_down
from django_once.models.gate.admit import admit_free
from django_once.models.job.locked import await_locks
from django_once.models.job.settle import mark_started, settle, what_became
from django_once.models.job.watch import asked_to_end
from django_once.models.notification import admit_next
from django_once.models.step import tell_progress
from django_once.processes import ends, hygiene
from django_once.processes.child import or_end_the_process
from django_once.processes.ends import Ended
from django_once.processes.guards import Guards
from django_once.processes.persistence import Persistence
from django_once.processes.running import Running
from django_once.processes.slots import Slots
from django_once.sql import own
from django_once.sql.values import LOCK, Attempt, Outcome, Told
from django_once.wakeups.listen import announce

BATCH: Final = 500
# A body that runs longer than this is written down as started; a shorter one at its end.
LONG: Final = 0.1
# When a key is asked for again that a writer held.
SOON: Final = 0.01
# How often a gate is asked for again: whoever has it locked for longer is found by the sweep.
MOST_TRIES: Final = 20
# How long figures wait in memory; a process that is killed loses so much of them.
FIGURES: Final = 5.0
# How long a body must run before the database is asked whether it should end, and how often then.
WATCHED: Final = 1.0


class Settler(threading.Thread):
    """The one thread of a worker that ends attempts."""

    def __init__(
        self, backend: DatabaseBackend, slots: Slots, guards: Guards,
        due_later: Callable[[], None], look_now: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(name="once-settler", daemon=True)
        self.backend = backend
        self.ended = 0
        self._slots = slots
        self._guards = guards
        self._due_later = due_later
        self._look_now = look_now
        self._open: Counter[UUID] = Counter()
        self._counting = threading.Lock()
        self._outbox: SimpleQueue[Ended | None] = SimpleQueue()
        self._unsettled: list[Ended] = []
        self._marked: set[tuple[UUID, UUID]] = set()
        self._watch_at = 0.0
        self._announce_at: float | None = None
        self._figures_at = time.monotonic() + FIGURES
        self._ordered: set[str] = set()
        # Gates at which somebody may pass, and how often they were found locked.
        self._gates: dict[str, int] = {}
        self._persistence = Persistence(backend.settings.database, "settler")

    @property
    def unsettled(self) -> int:
        """How many outcomes are on their way."""
        return self._outbox.qsize() + len(self._unsettled)

    @property
    def is_stuck(self) -> bool:
        """Whether the database does not take outcomes at present."""
        return self._persistence.failures > 0

    def expect(self, attempts: list[Attempt]) -> list[UUID]:
        """Remember claims whose ends are to come; return the nonces of these claims."""
        counted = _counted([attempt.claim for attempt in attempts])
        with self._counting:
            self._open.update(counted)
        return list(counted)

    def claims_held(self) -> set[UUID]:
        """Return the claims under which attempts are still open here."""
        with self._counting:
            return set(self._open)

    def put(self, ended: Ended) -> None:
        """Hand over an attempt that has ended."""
        self._outbox.put(ended)

    def finish(self) -> None:
        """Let the thread end when everything handed over before is settled."""
        self._outbox.put(None)

    def run(self) -> None:
        """Settle until told to finish."""
        or_end_the_process(self._work)()

    def _work(self) -> None:
        own.enter()
        is_last = False
        while not is_last:
            is_last = self._gather()
            if self._unsettled:
                self._settle()
            else:
                self._admit_next()
                self._admit_free()
            self._look_after_long_ones()
            self._announce_what_is_due_later(is_last)
            self._write_figures(is_last)

    def _gather(self) -> bool:
        """Wait for ends and take what is there; return whether to finish after it."""
        try:
            ended = self._outbox.get(timeout=SOON if self._ordered or self._gates else LONG)
            while True:
                if ended is None:
                    return True
                self._unsettled.append(ended)
                if len(self._unsettled) >= BATCH:
                    return False
                ended = self._outbox.get_nowait()
        except Empty:
            return False

    def _settle(self) -> None:
        batch = self._unsettled = self._guards.judged(self._unsettled, self._persistence.tried)
        database = self.backend.settings.database
        outcomes = [ended.outcome for ended in batch if ended.outcome is not None]
        was_sent = False
        crash_point("settle.sending")
        while True:
            answered, superseded = self._persistence.tried(lambda: settle(database, outcomes))
            if answered:
                break
            was_sent = True
            self._persistence.wait()
        assert superseded is not None
        if was_sent and superseded:
            superseded = self._really_superseded(batch, superseded)
        crash_point("settle.committed")
        self._admit(batch)
        self._ordered.update(
            ended.attempt.order_key for ended in batch if ended.attempt.order_key is not None
        )
        self._admit_next()
        self._await_locks(outcomes)
        self._write_down([ended.told for ended in batch if ended.told is not None])
        self._tell(batch, superseded)
        self._announce(batch)
        self._unsettled = []

    def _admit(self, batch: list[Ended]) -> None:
        """Let others pass where these jobs have left their slots; what is missed a sweep finds."""
        gates = {ended.attempt.gate for ended in batch if ended.attempt.gate is not None}
        if not gates:
            return
        self._gates.update(dict.fromkeys(gates, 0))
        self._admit_free()
        if any(ended.outcome is not None and ended.outcome.status == Job.READY for ended in batch):
            # What came back stands at its gate again when a keeper has looked.
            self._say(is_ready=False)

    def _admit_free(self) -> None:
        """Admit at the gates that are free; what somebody has locked is tried again, for a while.

        Whoever has it locked may have counted before the slot was free.
        """
        if not self._gates:
            return
        settings = self.backend.settings
        _, found = self._persistence.tried(
            lambda: admit_free(settings.database, self.backend.alias, self._gates)
        )
        admitted, busy = found or (0, set[str]())
        self._gates = {
            gate: tries + 1
            for gate, tries in self._gates.items()
            if gate in busy and tries < MOST_TRIES
        }
        if admitted:
            self._look_now()
            self._say(is_ready=True)

    def _admit_next(self) -> None:
        """Let what comes after ordered jobs go; what a writer holds is asked for again."""
        if not self._ordered:
            return
        settings, keys = self.backend.settings, sorted(self._ordered)[:BATCH]
        _, found = self._persistence.tried(
            lambda: admit_next(settings.database, self.backend.alias, keys)
        )
        if found is None:
            return
        admitted, held = found
        self._ordered -= set(keys) - held
        if admitted:
            self._say(is_ready=True)
            self._due_later()

    def _await_locks(self, outcomes: list[Outcome]) -> None:
        """Let jobs that met a held lock be let go by its release; what is missed a sweep finds."""
        reasons = {one.blocked_by for one in outcomes if one.blocked_by.startswith(LOCK)}
        if reasons:
            self._persistence.tried(lambda: await_locks(self.backend.settings.database, reasons))

    def _really_superseded(self, batch: list[Ended], missing: set[UUID]) -> set[UUID]:
        """Return those of the missing that somebody else ended: the others were settled before."""
        database = self.backend.settings.database
        asked = [
            (ended.attempt.id, ended.attempt.claim)
            for ended in batch
            if ended.attempt.id in missing
        ]
        removed = [
            one.outcome.id for one in batch if one.outcome is not None and one.outcome.removed
        ]
        while True:
            answered, became = self._persistence.tried(
                lambda: what_became(database, asked, removed)
            )
            if answered and became is not None:
                return {job for job, state in became.items() if state == "superseded"}
            self._persistence.wait()

    def _tell(self, batch: list[Ended], superseded: set[UUID]) -> None:
        counting.count(ends.counted(batch, superseded))
        are_heard = events.success_is_heard() or signals.returns_are_heard()
        for ended in batch:
            if ended.outcome is not None and ended.attempt.id in superseded:
                events.attempt_superseded(ended.attempt.id, ended.attempt.attempt)
            elif are_heard or ended.exception is not None:
                ends.tell_finished(self.backend, ended)
        if self._marked:
            self._marked -= {(ended.attempt.id, ended.attempt.claim) for ended in batch}
        # Receivers of signals are other people's code, on this thread's connection.
        hygiene.clean()
        self.ended += len(batch)
        with self._counting:
            self._open -= _counted([ended.attempt.claim for ended in batch])

    def _announce(self, batch: list[Ended]) -> None:
        """Wake whoever may run what came back, or what comes next in a series."""
        outcomes = [ended.outcome for ended in batch if ended.outcome is not None]
        back = [one for one in outcomes if one.status == Job.READY and not one.blocked_by]
        if any(one.delay <= 0 for one in back):
            self._say(is_ready=True)
        is_of_a_series = any(ended.attempt.key is not None for ended in batch)
        is_later = is_of_a_series or any(one.delay > 0 for one in back)
        if is_later:
            self._due_later()
        if is_later and self._announce_at is None:
            # Said after the window in which a word like it would be dropped.
            self._announce_at = time.monotonic() + LONG

    def _announce_what_is_due_later(self, is_last: bool) -> None:
        """Let the keepers look when the next job is due, now that there is another."""
        if self._announce_at is not None and (is_last or time.monotonic() >= self._announce_at):
            self._announce_at = None
            self._say(is_ready=False)

    def _write_figures(self, is_last: bool) -> None:
        """Add what was counted to the figures, now and then; they are for graphs, and can wait."""
        now = time.monotonic()
        if is_last or now >= self._figures_at:
            self._figures_at = now + FIGURES
            self._persistence.tried(
                lambda: write_down(self.backend.settings.database, self.backend.alias)
            )

    def _say(self, *, is_ready: bool) -> None:
        if self.backend.settings.wakeup == "auto":
            announce(self.backend.settings.database, self.backend.alias, is_ready=is_ready)

    def _look_after_long_ones(self) -> None:
        long = [one for one in self._slots.running if one.was_called and one.seconds >= LONG]
        if not long:
            return
        self._mark_started(long)
        now = time.monotonic()
        if now >= self._watch_at and any(running.seconds >= WATCHED for running in long):
            self._watch_at = now + WATCHED
            told = [running.take_told() for running in long]
            self._write_down([one for one in told if one is not None])
            self._ask_to_end(long)

    def _write_down(self, told: list[Told]) -> None:
        """Write down how far bodies are; what is lost with a line, the next word replaces."""
        if told:
            database = self.backend.settings.database
            self._persistence.tried(lambda: tell_progress(database, told))

    def _mark_started(self, long: list[Running]) -> None:
        """Write down the start of bodies that run long, so that people see it.

        Not of `exactly_once` bodies: their rows are locked until they end, and whoever ends
        attempts must wait for nobody.
        """
        started = [
            (running.attempt.id, running.attempt.claim, running.seconds)
            for running in long
            if running.attempt.delivery != EXACTLY_ONCE
            and (running.attempt.id, running.attempt.claim) not in self._marked
        ]
        if not started:
            return
        database = self.backend.settings.database
        answered, _ = self._persistence.tried(lambda: mark_started(database, started))
        if answered:
            self._marked.update((job, claim) for job, claim, _ in started)

    def _ask_to_end(self, long: list[Running]) -> None:
        """Hand on to bodies what people asked of their jobs, and what became of these."""
        database = self.backend.settings.database
        bodies = [(running.attempt.id, running.attempt.claim) for running in long]
        _, asked = self._persistence.tried(lambda: asked_to_end(database, bodies))
        for (job, claim), why in (asked or {}).items():
            self._slots.ask(job, claim, why)


def _counted(claims: list[UUID]) -> Counter[UUID]:
    """Return how often each claim is there; those of one claim are one object, side by side."""
    counted: Counter[UUID] = Counter()
    for claim, same in groupby(claims, key=id):
        del claim
        first, *others = same
        counted[first] += 1 + len(others)
    return counted
