"""Taking jobs: one of many waiting, under a fence, each by one attempt at a time.

A claim is one statement: READY with a position becomes RUNNING, under a fresh nonce drawn here
before it is sent, so that a lost answer can be asked for. The ready index is walked lane by lane
(a queue and a priority), in the order of positions.

The hard thing is what stands at the head of a lane. Rows that were claimed leave dead entries in
the index, and where somebody holds a snapshot open nothing removes them; a walk from the start
then steps over everything that was ever claimed. So a walk remembers, per lane, the highest
position it claimed, and goes on there.

A lower position may still commit later. So the memory is a hint, and forgotten regularly: the walk
starts again at the beginning each half second, or less often when that was measured to cost more
than a twentieth of the time. Whoever finds nothing has the time: it looks within a second, whatever
that costs, and forgets the lanes that are drained. Where everything was drained and walks are
short, each claim begins with the question which lanes have anything at all: an idle worker that
was woken for nothing, or looks once more, asks one thing and no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from operator import attrgetter
from typing import Final
from uuid import UUID

from django_once import identity, sql
from django_once.crash import crash_point
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements
from django_once.sql.values import Attempt, Holder, Lane

EVERY_QUEUE: Final = "*"
SECONDS_BETWEEN_LOOKS: Final = 0.5
LONGEST_BETWEEN_LOOKS: Final = 30.0
LONGEST_IN_VAIN: Final = 0.75
# A walk from the start may take this part of the time.
SHARE_OF_WALKS: Final = 0.05
# Whoever has drained everything may walk from the start each time, while that takes no longer.
SHORT_WALK: Final = 0.05
_position: Final = attrgetter("position")


class Walk:
    """One worker's way through the ready jobs of its queues."""

    def __init__(
        self, database: str, holder: Holder, queues: Iterable[str] = (EVERY_QUEUE,),
        excluded: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.database = database
        self.holder = holder
        self.queues = tuple(queues)
        self.excluded = frozenset(excluded)
        self.awaited: UUID | None = None
        self._lows: dict[Lane, int] = {}
        self._looked_at = 0.0
        self._look_at = 0.0
        self._took = 0.0
        self._is_drained = False

    @property
    def seconds_until_look(self) -> float:
        """Return how long until this walk may look again at what it has passed."""
        return max(0.0, self._look_at - time.monotonic())

    @property
    def has_lanes(self) -> bool:
        """Return whether there are lanes whose beginning this walk has left behind."""
        return bool(self._lows)

    def claim(self, most: int) -> list[Attempt]:
        """Take up to so many jobs, the most urgent first; empty when none can run now.

        Until the next look it takes only what lies beyond what it claimed before.
        """
        is_cheap = self._is_drained and self._took < SHORT_WALK
        if is_cheap or time.monotonic() >= self._look_at:
            return self._claim_from_start(most)
        attempts = self._claim(most, self._lows)
        if len(attempts) < most:
            # What was drained may have got lanes of other priorities meanwhile.
            new = self._lanes_beside(self._lows)
            if new:
                attempts += self._claim(most - len(attempts), dict.fromkeys(new, 0))
        if not attempts:
            self._look_at = min(self._look_at, self._looked_at + LONGEST_IN_VAIN)
        self._is_drained = len(attempts) < most
        return attempts

    def _claim_from_start(self, most: int) -> list[Attempt]:
        began = time.monotonic()
        attempts = self._claim(most, dict.fromkeys(self._lanes_beside(()), 0))
        self._is_drained = len(attempts) < most
        if self._is_drained:
            # Every lane was walked to its end: those that gave nothing are drained.
            alive = {Lane(attempt.queue, attempt.priority) for attempt in attempts}
            self._lows = {lane: low for lane, low in self._lows.items() if lane in alive}
        self._looked_at = time.monotonic()
        self._took = self._looked_at - began
        pause = min(self._took / SHARE_OF_WALKS, LONGEST_BETWEEN_LOOKS)
        self._look_at = self._looked_at + max(pause, SECONDS_BETWEEN_LOOKS)
        return attempts

    def _claim(self, most: int, lows: dict[Lane, int]) -> list[Attempt]:
        lanes = sorted(((lane, low) for lane, low in lows.items()), key=self._urgency)
        if not lanes:
            return []
        statements = sql.on(self.database)
        self.awaited = identity.nonce()
        attempts = repeated(statements.connection, lambda: self._take(statements, lanes, most))
        crash_point("claim.committed")
        self.awaited = None
        highest: dict[tuple[str, int], int] = {}
        for attempt in attempts:
            at = attempt.queue, attempt.priority
            highest[at] = max(highest.get(at, 0), attempt.position)
        for (queue, priority), position in highest.items():
            lane = Lane(queue, priority)
            # A look that found as many as it wanted has left others behind, perhaps below what was
            # claimed before: a bulk that committed late, or a share that lags. The way goes there.
            left_behind = len(attempts) >= most
            self._lows[lane] = position if left_behind else max(self._lows.get(lane, 0), position)
        if len(highest) == 1:
            return sorted(attempts, key=_position)
        return sorted(attempts, key=self._order)

    def _take(
        self, statements: Statements, lanes: list[tuple[Lane, int]], most: int
    ) -> list[Attempt]:
        assert self.awaited is not None
        return statements.claim(self.holder, self.awaited, lanes, most)

    def _lanes_beside(self, known: Iterable[Lane]) -> list[Lane]:
        """Return the lanes of these queues that have ready jobs and are not known."""
        found = sql.on(self.database).lanes_between(self.holder.backend, known)
        return [lane for lane in found if self._serves(lane.queue)]

    def _serves(self, queue: str) -> bool:
        if queue in self.excluded:
            return False
        return queue in self.queues or EVERY_QUEUE in self.queues

    def _rank(self, queue: str) -> int:
        return self.queues.index(queue) if queue in self.queues else len(self.queues)

    def _urgency(self, lane_and_low: tuple[Lane, int]) -> tuple[int, int, int]:
        lane, low = lane_and_low
        return self._rank(lane.queue), -lane.priority, low

    def _order(self, attempt: Attempt) -> tuple[int, int, int]:
        return self._rank(attempt.queue), -attempt.priority, attempt.position
