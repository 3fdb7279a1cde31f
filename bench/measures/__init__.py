"""The measures: each yields figures; `bench.catalogue` says where each makes sense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bench.figures import Figure
from bench.measures import (
    backlog,
    drain,
    enqueue,
    held,
    idle,
    lanes,
    limits,
    locks,
    memory,
    pickup,
    schedules,
)
from bench.session import Session

MEASURES: Final[dict[str, Callable[[Session], Iterator[Figure]]]] = {
    "enqueue": enqueue.one_by_one,
    "bulk": enqueue.in_bulk,
    "drain": drain.one_process,
    "drain2": drain.two_processes,
    "deliveries": drain.deliveries,
    "async": drain.awaited,
    "threads": drain.threads,
    "pickup": pickup.pickup,
    "wakeups": pickup.wakeups,
    "locks": locks.locks,
    "schedules": schedules.due_at_once,
    "idle": idle.idle,
    "memory": memory.child,
    "unanalyzed": backlog.never_analyzed,
    "backlog": backlog.beside,
    "lanes": lanes.priorities,
    "limits": limits.limits,
    "waiting": limits.waiting,
    "late": lanes.late,
    "held": held.snapshot,
    "growth": held.growth,
}
