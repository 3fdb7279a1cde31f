"""The coroner: gives back at once what a dead worker held, with the reason of its death.

Whoever saw the death knows what no lease tells: which bodies had been called. Those are charged
with the death, or ended when they may not be started twice; what had only been claimed goes back
free. Bodies that ran past their timeout are the reason of the death, and end as `TimedOut`. Should
the coroner die too, the lease lapses and a sweep does the same with less knowledge.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django_once import events
from django_once.backend import DatabaseBackend
from django_once.definitions import registry
from django_once.errors import TimedOut
from django_once.models.job.expire import expire_dead, is_empty_handed
from django_once.models.worker import declare_dead
from django_once.processes import ends
from django_once.processes.board import Started
from django_once.processes.persistence import Persistence
from django_once.sql.values import Held
from django_once.wakeups.listen import announce

# The server takes a moment to notice that a killed session is gone, and to free its rows.
PAUSE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What was seen of a worker's end: its bodies, why it ended, and whose fault that was."""

    worker: UUID
    started: Sequence[Started]
    reason: str
    is_charged: bool
    overran: Sequence[Started] = ()


def bury(backend: DatabaseBackend, death: Death, patience: float) -> None:
    """Expire a dead worker and end its attempts; tries for so many seconds, then leaves it."""
    persistence = Persistence(backend.settings.database, "coroner")
    until = time.monotonic() + patience
    while time.monotonic() < until:
        answered, is_done = persistence.tried(lambda: _is_over(backend, death))
        if answered and is_done:
            return
        time.sleep(max(PAUSE, persistence.pause))


def _is_over(backend: DatabaseBackend, death: Death) -> bool:
    """Take what nobody has locked; declare the worker lost when nothing is left of it."""
    database = backend.settings.database
    swept = expire_dead(
        database,
        death.worker,
        [(body.job, body.claim) for body in death.started],
        death.reason,
        charged=death.is_charged,
        overran=[(body.job, body.claim) for body in death.overran],
        policy=lambda held: _seconds_until_next(backend, held),
    )
    for job in swept:
        events.job_swept(job, death.reason)
    if swept:
        announce(database, backend.alias, is_ready=True)
        # Retries and successors are due later.
        announce(database, backend.alias, is_ready=False)
    if not is_empty_handed(database, death.worker):
        return False
    declare_dead(database, death.worker)
    return True


def _seconds_until_next(backend: DatabaseBackend, held: Held) -> float | None:
    """Return when the policy of a job that overran lets it be tried again, or None."""
    exception = TimedOut(f"Attempt {held.attempt} of job {held.id} ran past its timeout.")
    budget = (held.failures + 1, held.max_attempts)
    delay = ends.delay_of(backend, registry.find(held.task), exception, *budget)
    return None if delay is None else delay.total_seconds()


def reason_of(status: int) -> str:
    """Return what a wait status says of a death, for people."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"was killed by {name}"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"
