"""Locks: one holder of a name among all processes, with a fence that its writes can carry.

    with lock("export:7", lease="1m") as held:
        export(fence=held.fence)

A lock is a lease: it ends by itself when its holder dies. No lease can keep a holder that was
paused from waking up late, so what it writes should carry the fence; `guard` refuses the lower one.
"""

from __future__ import annotations

from django_once.errors import FenceRefused, LockHeld, LockLost
from django_once.locks.guarding import guard
from django_once.locks.holding import Held
from django_once.locks.scheduled import (
    acquire_task_lock,
    process_id,
    release_task_lock,
    run_scheduled_job,
)
from django_once.locks.taking import lock

__all__ = [
    "FenceRefused",
    "Held",
    "LockHeld",
    "LockLost",
    "acquire_task_lock",
    "guard",
    "lock",
    "process_id",
    "release_task_lock",
    "run_scheduled_job",
]
