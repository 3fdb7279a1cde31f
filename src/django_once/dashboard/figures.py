"""The figures of a place at a glance: its queues, its workers, and what needs somebody's attention.

Each question stops at a bound and says so, since a million rows that wait must not make a page
wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django_once import sql
from django_once.backend import DatabaseBackend
from django_once.dashboard import filters
from django_once.dashboard.visits import Visit
from django_once.definitions import registry
from django_once.management.screen import length
from django_once.management.selection import counted
from django_once.models import Pause, Worker
from django_once.models.job import look
from django_once.models.pause.stop import pauses
from django_once.models.schedule.look import late
from django_once.models.tally.breaker import open_breakers
from django_once.models.worker import seen, state_of
from django_once.sql import counts as sql_counts
from django_once.sql import samples

MOST: Final = 10_000
MINUTE: Final = 60.0
LONG: Final = timedelta(minutes=5)
HOUR: Final = timedelta(hours=1)
EVERY_QUEUE: Final = "*"


@dataclass(slots=True)
class Queue:
    """One queue as it is now; a number that is bounded may be larger."""

    backend: str
    name: str
    ready: int = 0
    is_more: bool = False
    running: int = 0
    scheduled: int = 0
    blocked: int = 0
    oldest: datetime | None = None
    rate: float = 0.0
    readers: int = 0
    pause: Pause | None = None
    # How long its backlog takes at the rate of the last minute, in seconds.
    backlog: float | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that needs attention: how bad it is, what it says, and where it leads."""

    level: str
    says: str
    page: str = ""
    query: str = ""
    command: str = ""


@dataclass(slots=True)
class Figures:
    """A place as it is now."""

    queues: list[Queue] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    bounded: set[str] = field(default_factory=set)
    workers: list[Worker] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    failed_lately: int = 0

    @property
    def rate(self) -> float:
        """How many jobs ended in a second of the last minute."""
        return sum(queue.rate for queue in self.queues)


def figures(visit: Visit) -> Figures:
    """Return the queues, sums and workers of a place."""
    found = Figures()
    queues = {(one.alias, name): Queue(one.alias, name) for one in visit.backends
              for name in sorted(_named(one))}  # fmt: skip
    statements = sql.on(visit.database)
    for alias in visit.aliases:
        for depth in samples.depths(statements, alias):
            queue = queues.setdefault((alias, depth.queue), Queue(alias, depth.queue))
            queue.ready, queue.is_more, queue.oldest = depth.jobs, depth.is_more, depth.oldest
        for state in (look.RUNNING, look.SCHEDULED, look.BLOCKED):
            for name, jobs, _ in sql_counts.by_queue(statements, state, [alias], MOST):
                setattr(queues.setdefault((alias, name), Queue(alias, name)), state, jobs)
    _count_rates(visit, queues)
    found.queues = sorted(queues.values(), key=lambda one: (one.backend, one.name))
    for state in (*look.WAITING, look.RUNNING):
        found.totals[state] = sum(getattr(one, state) for one in found.queues)
        if state != look.READY and found.totals[state] >= MOST:
            found.bounded.add(state)
    if any(one.is_more for one in found.queues):
        found.bounded.add(look.READY)
    _meet_workers(visit, found)
    found.failed_lately = look.ended_lately(visit.database, visit.aliases, HOUR, MOST)[look.FAILED]
    return found


def alarms(visit: Visit, found: Figures) -> list[Alarm]:
    """Return what needs attention, the worst first."""
    told = [*_of_workers(visit, found), *_of_queues(visit, found), *_of_jobs(visit, found),
            *_of_breakers(visit), *_of_schedules(visit)]  # fmt: skip
    return sorted(told, key=lambda alarm: ("error", "warning", "note").index(alarm.level))


def _named(backend: DatabaseBackend) -> set[str]:
    declared = {task.queue_name for task in registry.tasks() if task.backend == backend.alias}
    return set(backend.queues) | declared


def _count_rates(visit: Visit, queues: dict[tuple[str, str], Queue]) -> None:
    counted_jobs, seconds = samples.rates(sql.on(visit.database), visit.aliases, MINUTE, MOST)
    for (alias, name), jobs in counted_jobs.items():
        queue = queues.setdefault((alias, name), Queue(alias, name))
        queue.rate = jobs / seconds
    for queue in queues.values():
        if queue.ready and queue.rate:
            queue.backlog = queue.ready / queue.rate


def _meet_workers(visit: Visit, found: Figures) -> None:
    found.workers = seen(visit.database, visit.aliases)
    states = [state_of(worker, visit.now) for worker in found.workers]
    found.states = {state: states.count(state) for state in ("alive", "lapsed")}
    found.pauses = pauses(visit.database, visit.aliases)
    paused = {(one.backend, one.name): one for one in found.pauses if one.kind == Pause.QUEUE}
    for queue in found.queues:
        queue.pause = paused.get((queue.backend, queue.name))
        queue.readers = sum(
            queue.backend == worker.backend and _reads(worker, queue.name)
            for worker, state in zip(found.workers, states, strict=True) if state == "alive"
        )  # fmt: skip


def _reads(worker: Worker, queue: str) -> bool:
    names = json.loads(worker.queues)
    return queue in names or EVERY_QUEUE in names


def _of_workers(visit: Visit, found: Figures) -> Iterator[Alarm]:
    open_jobs = sum(found.totals.values())
    if not found.states["alive"] and not found.workers:
        level = "error" if open_jobs else "note"
        told = f", and {counted(open_jobs)} wait" if open_jobs else ""
        yield Alarm(level, f"No worker is running{told}. Start one:",
                    command="python manage.py once worker")  # fmt: skip
    for alias in visit.aliases:
        orphans = look.count_orphans(visit.database, alias)
        if orphans:
            says = f"Workers that are gone hold {counted(orphans)}; any worker gives them back."
            yield Alarm("warning", says, "jobs", "state:running")
    if found.states["lapsed"]:
        number = found.states["lapsed"]
        says = "1 worker has not renewed its lease" if number == 1 else (
            f"{number} workers have not renewed their leases"
        )  # fmt: skip
        yield Alarm("warning", f"{says}: paused, cut off, or killed.", "workers")


def _of_queues(visit: Visit, found: Figures) -> Iterator[Alarm]:
    several = len(visit.backends) > 1
    for queue in found.queues:
        name = f"{queue.name!r} of {queue.backend!r}" if several else repr(queue.name)
        where = filters.written(queue=queue.name, state=look.READY)
        if queue.pause is not None:
            why = f": {queue.pause.reason}" if queue.pause.reason else ""
            yield Alarm("note", f"Queue {name} is paused{why}.", "queues")
        elif queue.ready and not queue.readers and found.states["alive"]:
            yield Alarm(
                "error",
                f"Queue {name} has {counted(queue.ready)} that could run, and no worker takes "
                "from it. Start one:", "jobs", where,
                f"python manage.py once worker --queues {queue.name}",
            )  # fmt: skip
        elif queue.oldest is not None and visit.now - queue.oldest > LONG:
            waits = length((visit.now - queue.oldest).total_seconds())
            yield Alarm("warning", f"Queue {name}: the oldest ready job waits for {waits}.",
                        "jobs", where)  # fmt: skip


def _of_jobs(visit: Visit, found: Figures) -> Iterator[Alarm]:
    if found.failed_lately:
        more = "at least " if found.failed_lately >= MOST else ""
        said = f"{more}{counted(found.failed_lately)}".capitalize()
        yield Alarm("warning", f"{said} failed in the last hour.", "failures")
    reasons = samples.blocked_by(sql.on(visit.database), visit.aliases, MOST)
    unknown = reasons.get("unknown_task", 0)
    if unknown:
        says = f"{counted(unknown).capitalize()} wait for a worker that knows their task."
        yield Alarm("error", says, "jobs", "state:blocked blocked:unknown_task")


def _of_breakers(visit: Visit) -> Iterator[Alarm]:
    for tally in open_breakers(visit.database, visit.aliases):
        says = f"Task {tally.task!r} rests: too many of its attempts failed."
        yield Alarm("error", says, "queues")


def _of_schedules(visit: Visit) -> Iterator[Alarm]:
    for schedule, why in late(visit.database, 10):
        yield Alarm("error", f"Schedule {schedule.name!r} {why}", "schedules")


def oldest(found: Figures, most: int) -> Sequence[Queue]:
    """Return the queues whose oldest ready job waits longest."""
    waiting = [(queue.oldest, n) for n, queue in enumerate(found.queues) if queue.oldest]
    return [found.queues[n] for _, n in sorted(waiting)[:most]]
