"""Becoming ready: time passes, or what blocked a job is gone.

Rows enqueued for later have no position, so the ready index holds only what can run now. Here
they get one, in batches; nothing depends on who calls this, or how often.

What must pass a gate gets no place by this, but a rank among those who wait there; the first of
them are admitted at once, as far as they may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django_once import sql
from django_once.models.gate.admit import admit
from django_once.models.job.expire import reconcile as reconcile
from django_once.models.job.expire import sweep as sweep
from django_once.sql.repeat import repeated
from django_once.sql.values import UNKNOWN_TASK, Placed

BATCH = 1_000
# Those who are let go are sorted for each batch.
MOST_LET_GO = 5_000


def promote(database: str, most: int = BATCH) -> int:
    """Give due jobs their position, the longest due first; return how many were due."""
    statements = sql.on(database)
    placed = repeated(statements.connection, lambda: statements.promote(most))
    admit_placed(database, placed)
    return len(placed)


def seconds_to_next_due(database: str) -> float | None:
    """Return how long until the next waiting job is due, or None when none waits."""
    return sql.on(database).seconds_to_next_due()


def readmit_known(database: str, tasks: Iterable[str]) -> int:
    """Readmit jobs that waited because no worker knew their task, and these are known now."""
    statements = sql.on(database)
    known = sorted(tasks)
    if not known:
        return 0
    readmitted = 0
    while True:
        placed = repeated(
            statements.connection, lambda: statements.readmit(UNKNOWN_TASK, known, BATCH)
        )
        admit_placed(database, placed)
        readmitted += len(placed)
        if len(placed) < BATCH:
            return readmitted


def let_some_go(database: str, where: str, parameters: Sequence[Any], most: int) -> list[Placed]:
    """Place up to so many blocked jobs of which this holds, the longest due first.

    Joins the caller's transaction, after which the caller admits them at their gates.
    """
    return sql.on(database).place("once_job_blocked", where, parameters, most)


def let_go(database: str, blocked_by: str, unless: str) -> int:
    """Place the jobs that this reason blocks and of which a condition holds; count them."""
    statements = sql.on(database)
    gone = 0
    while True:
        placed = repeated(
            statements.connection, lambda: statements.let_go(blocked_by, unless, MOST_LET_GO)
        )
        admit_placed(database, placed)
        gone += len(placed)
        if len(placed) < MOST_LET_GO:
            return gone


def admit_placed(database: str, placed: Sequence[Placed]) -> None:
    """Admit those of these jobs that must pass a gate, as far as they may pass."""
    gates: dict[str, set[str]] = {}
    for one in placed:
        if one.gate is not None:
            gates.setdefault(one.backend, set()).add(one.gate)
    for backend, names in gates.items():
        admit(database, backend, names)
