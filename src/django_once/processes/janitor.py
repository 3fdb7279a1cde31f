"""The janitor: deletes what has been kept long enough, a little at a time.

Each turn is one short transaction, and says how long to rest before the next. Where much is old,
turns follow each other with pauses as long as their work, so the database belongs to others half
of the time; a batch that took long makes the next one smaller. Any number of janitors may be at
work: each passes over the rows that another has locked.

It remembers, for each status, up to which end it has looked. Failures are kept longer than
successes, and would be walked over again by every batch. Once an hour it looks from the start,
since what was locked then is not locked now.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django_once.backend import DatabaseBackend
from django_once.models.broadcast import forget_told
from django_once.models.gate.admit import forget_gates
from django_once.models.job.prune import BATCH, prune_from
from django_once.models.notification import forget_kept
from django_once.models.worker import forget

REST: Final = 30.0
FORGETS_AFTER: Final = 3600.0
SHORTEST_PAUSE: Final = 0.02
LONGEST_BATCH: Final = 0.25
SMALLEST_BATCH: Final = 50
WORKERS: Final = "workers"
# Whose channel says how long its own are kept.
NOTIFICATIONS: Final = "notifications"
# Looked through once an hour: each key of a limit leaves one. So are broadcasts.
GATES: Final = "gates"
# Who ended long ago explains no job of today; restarts would fill the table.
WORKERS_KEPT: Final = timedelta(days=1)


class Janitor:
    """One backend's retention, kept by whoever calls `turn()` when it is time."""

    def __init__(
        self, backend: DatabaseBackend, measured: Callable[[], float] = time.monotonic
    ) -> None:
        self.backend = backend
        self.batch = BATCH
        self.pruned = 0
        self._measured = measured
        self._database = backend.settings.database
        self._kept = dict(backend.settings.retention)
        self._left = self._rooms()
        self._since: dict[str, datetime | None] = {}
        self._forgets_at = measured() + FORGETS_AFTER

    def turn(self) -> float:
        """Delete at most one batch; return after how many seconds to come again.

        An error of the database leaves all as it was: the same turn can be made again.
        """
        began = self._measured()
        room = self._left[0]
        if room == GATES:
            deleted = forget_gates(self._database, self.backend.alias, self.batch)
            # Where nobody listens, nobody else deletes them.
            forget_told(self._database)
        elif room == NOTIFICATIONS:
            deleted = forget_kept(self._database, self.backend.alias, self.batch)
        else:
            deleted = self._forget_workers() if room == WORKERS else self._prune(room)
        spent = self._measured() - began
        self.pruned += deleted
        is_full = deleted >= self.batch
        self._fit_batch(spent, is_full)
        if is_full:
            return max(SHORTEST_PAUSE, spent)
        self._left.pop(0)
        if self._left:
            return max(SHORTEST_PAUSE, spent)
        self._left = self._rooms()
        self._look_again_from_the_start(began)
        # Keepers that started together must not come together for ever.
        return REST * random.uniform(0.8, 1.2)

    def _prune(self, status: str) -> int:
        pruned = prune_from(
            self._database, self.backend.alias, {status: self._kept[status]}, self.batch,
            since=self._since.get(status),
        )  # fmt: skip
        self._since[status] = pruned.reached
        return pruned.count

    def _forget_workers(self) -> int:
        return forget(self._database, WORKERS_KEPT, self.batch, [self.backend.alias])

    def _fit_batch(self, spent: float, is_full: bool) -> None:
        if spent > LONGEST_BATCH:
            self.batch = max(SMALLEST_BATCH, self.batch // 2)
        elif is_full and spent < LONGEST_BATCH / 4:
            self.batch = min(BATCH, self.batch * 2)

    def _look_again_from_the_start(self, now: float) -> None:
        if now >= self._forgets_at:
            self._since.clear()
            self._forgets_at = now + FORGETS_AFTER
            self._left.append(GATES)

    def _rooms(self) -> list[str]:
        return [*self._kept, WORKERS, NOTIFICATIONS]
