"""Ageing: who has been ready for long without being claimed gets a higher priority.

The place of a job says since when it stands in its lane. Who has stood there for as long as the
queue lets anybody wait goes on to the end of a lane ten priorities higher, and has stood there
since then. So no memory is needed but the place, everybody is lifted once in each such time, and
whoever walks a lane meets what was lifted as it meets what is new: behind all it has claimed.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from django_once import sql
from django_once.compat import TASK_MAX_PRIORITY
from django_once.sql import ageing
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements
from django_once.sql.values import Lane

STEP: Final = 10
BATCH: Final = 500
# One who lifts does other things, too; what is left is lifted the next time.
MOST_BATCHES: Final = 20


def lift(database: str, backend: str, queue: str, every: timedelta) -> int:
    """Lift those who have waited so long in the lanes of a queue; count them."""
    statements = sql.on(database)
    lanes = [lane for lane in statements.lanes_between(backend, []) if lane.queue == queue]
    lifted = 0
    # The highest first: nobody is lifted twice at once, since a place is drawn anew.
    for lane in sorted(lanes, reverse=True):
        if lane.priority >= TASK_MAX_PRIORITY:
            continue
        for _ in range(MOST_BATCHES):
            batch = partial(_lift, statements, backend, lane, every.total_seconds())
            count = repeated(statements.connection, batch)
            lifted += count
            if count < BATCH:
                break
    return lifted


def _lift(statements: Statements, backend: str, lane: Lane, seconds: float) -> int:
    with statements.planned():
        old = ageing.lock_old(statements, backend, lane, seconds, BATCH)
        if not old:
            return 0
        return ageing.lift(statements, old, min(TASK_MAX_PRIORITY, lane.priority + STEP))
