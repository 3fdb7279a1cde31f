"""The retry budget: at most a share of a task's attempts within a time are retries.

A retry is charged when it is allowed, not when it runs. What is beyond the budget waits, blocked;
each attempt that ends makes room for a part of one, and whoever counts it lets go as many as there
is room for. Where nothing ends any more, the window goes on, and whoever sweeps lets go the few
that are always allowed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial

from django_once import payload, sql
from django_once.models.job.ready import admit_placed, let_go, let_some_go
from django_once.models.tally.count import counted, sums, under_lock, written
from django_once.models.tally.row import Tally
from django_once.sql.stops import OF_BUDGET, UNBUDGETED
from django_once.sql.values import BUDGET, Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which share of attempts may be retries within so many seconds, and how many always may."""

    share: float
    within: float
    least: int

    def room(self, attempts: int, retries: int) -> int:
        """Return how many more may be tried again."""
        return max(0, max(self.least, int(self.share * attempts)) - retries)


def charge(
    database: str, backend: str, task: str, rule: Rule, ended: int, wanted: int
) -> tuple[int, int]:
    """Count so many ends; return how many of the wanted retries are allowed, and how many of those
    who waited were let go in their place."""
    allowed, placed = under_lock(
        database, backend, Tally.BUDGET, task, partial(_charge, database, rule, ended, wanted)
    )
    admit_placed(database, placed)
    return allowed, len(placed)


def look_after_budgets(database: str) -> int:
    """Let go what waits for budgets that have room, or are no more; count them."""
    gone = let_go(database, BUDGET, UNBUDGETED)
    for tally in Tally.objects.using(database).filter(kind=Tally.BUDGET):
        rule = Rule(**payload.decode(tally.rule))
        gone += charge(database, tally.backend, tally.task, rule, 0, 0)[1]
    return gone


def _charge(
    database: str, rule: Rule, ended: int, wanted: int, tally: Tally, now: datetime
) -> tuple[int, list[Placed]]:
    counts = counted(payload.decode(tally.counts), now, rule.within, ended)
    room = rule.room(*sums(counts))
    placed: list[Placed] = []
    if room:
        # Who waits already comes first.
        due = OF_BUDGET.format(now=sql.on(database).now)
        placed = let_some_go(database, due, [tally.backend, tally.task], room)
    allowed = min(wanted, room - len(placed))
    tally.counts = written(counted(counts, now, rule.within, 0, len(placed) + allowed))
    tally.rule = written(asdict(rule))
    return allowed, placed
