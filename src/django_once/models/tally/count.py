"""Counting how attempts went, in slices of a window: the sum of what is not older than it.

A slice is a tenth of the window, so that what is older goes a tenth at a time, and a row holds
eleven of them at most. Each is its number, how many attempts ended, and how many of these failed
or were retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from django_once import identity, payload, sql
from django_once.models.tally.row import Tally
from django_once.sql.counts import moment_from_now
from django_once.sql.repeat import repeated

Answer = TypeVar("Answer")
SLICES: Final = 10

Counts = list[list[int]]


def counted(
    counts: Sequence[Sequence[int]], now: datetime, within: float, ended: int = 0, of_them: int = 0
) -> Counts:
    """Return what still counts, with so many more."""
    current = int(now.timestamp() / (within / SLICES))
    kept = [list(one) for one in counts if current - SLICES <= one[0] <= current]
    if not ended and not of_them:
        return kept
    if not kept or kept[-1][0] != current:
        kept.append([current, 0, 0])
    kept[-1][1] += ended
    kept[-1][2] += of_them
    return kept


def sums(counts: Counts) -> tuple[int, int]:
    """Return how many attempts ended, and how many of them failed or were retries."""
    return sum(one[1] for one in counts), sum(one[2] for one in counts)


def under_lock(
    database: str, backend: str, kind: str, task: str, change: Callable[[Tally, datetime], Answer]
) -> Answer:
    """Return what is decided of this tally under its lock; what was changed of it is stored.

    The one lock that is held, and before those of jobs. It is for some milliseconds.
    """
    statements = sql.on(database)

    def work() -> Answer:
        with statements.together():
            tally = _locked(database, backend, kind, task)
            answer = change(tally, moment_from_now(statements))
            _of(database, backend, kind, task).update(
                rule=tally.rule, counts=tally.counts, opened_at=tally.opened_at,
                reopens_at=tally.reopens_at, trial=tally.trial,
            )  # fmt: skip
        return answer

    return repeated(statements.connection, work)


def written(value: Mapping[str, Any] | Counts) -> str:
    """Return a rule or counts as the row keeps them."""
    return payload.write(value, "tally", most_bytes=10_000)


def _locked(database: str, backend: str, kind: str, task: str) -> Tally:
    rows = _of(database, backend, kind, task).select_for_update()
    found: Tally | None = rows.first()
    if found is None:
        begun = Tally(id=identity.nonce(), backend=backend, kind=kind, task=task)
        Tally.objects.using(database).bulk_create([begun], ignore_conflicts=True)
        there: Tally = rows.get()
        return there
    return found


def _of(database: str, backend: str, kind: str, task: str) -> Any:
    return Tally.objects.using(database).filter(backend=backend, kind=kind, task=task)
