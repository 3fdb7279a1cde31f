"""Dispatch: a run that a foreign backend shall make is handed to it after the firing's commit.

The record of the firing is what is dispatched. If a broker is down, or this process dies between
the commit and the hand-over, the lease of the record lapses and any scheduler offers it again: not
before, not more often than a few times, and no more than so many at once. What promised to run
exactly once carries the record's id as its permit, under the name that its wrapper takes away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.db import transaction

from django_once import events
from django_once.models.execution.permit import dispatched, lease_again, offered
from django_once.permits import PERMIT, written
from django_once.scheduling import readings

# Given the database, the alias of the backend and the record of the run.
HandOver = Callable[[str, str, UUID], object]

LEASE: Final = 60.0
MOST_AT_ONCE: Final = 100


def dispatch(database: str, record: UUID) -> bool:
    """Hand a run to its backend; False when that, or the schedule, is gone."""
    offer = offered(database, record)
    if offer is None:
        return False
    try:
        task = readings.configured_task(
            database, offer.task, offer.queue, offer.priority, offer.backend
        )
        args, kwargs = readings.call_of(offer)
        has_permit = readings.needs_permit(task)
        permit = {PERMIT: written(database, record)} if has_permit else {}
        result = task.get_backend().enqueue(task, list(args), {**kwargs, **permit})
    except Exception as error:  # noqa: BLE001 - a broker's client raises what it likes
        events.dispatch_failed(offer.name, record, error)
        return False
    dispatched(database, record, str(result.id), is_spent=not has_permit)
    events.dispatched(offer.name, record, offer.dispatch_count + 1)
    return True


def after_commit(database: str, backend: str, record: UUID) -> None:
    """Dispatch a run when the caller's transaction has committed, whatever the others do."""
    transaction.on_commit(
        lambda: _hand_over(database, backend, record), using=database, robust=True
    )


def hand_over_by(other: HandOver) -> None:
    """Let all dispatches of this process happen so: a loop that must not wait has threads."""
    global _hand_over
    _hand_over = other


def at_once(database: str, backend: str, record: UUID) -> None:
    """Dispatch in the thread that committed."""
    dispatch(database, record)


_hand_over: HandOver = at_once


def dispatch_again(database: str, lease: float = LEASE) -> int:
    """Offer again what was never handed over, or stays away too long; return how many."""
    again = 0
    for record in lease_again(database, lease, MOST_AT_ONCE):
        offer = offered(database, record)
        if offer is not None:
            _hand_over(database, offer.backend, record)
            again += 1
    return again
