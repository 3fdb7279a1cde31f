"""`once status`: queues and workers at a glance, and what is wrong with them.

The exit status is 1 when something is wrong, so a cron job or a probe may ask.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.management.base import CommandParser

from django_once import __version__
from django_once.backend import DatabaseBackend
from django_once.management.places import OK, PROBLEM, add_backend, places
from django_once.management.screen import (
    Cell,
    Column,
    Screen,
    add_json,
    iso,
    length,
    one_line,
    written,
)
from django_once.management.selection import counted
from django_once.models import Worker
from django_once.models.job import look
from django_once.models.job.look import MOST_COUNTED, Count
from django_once.models.tally.breaker import open_breakers
from django_once.models.worker import seen, state_of

MINUTE: Final = timedelta(minutes=1)
LATELY: Final = timedelta(minutes=10)
WATCHES: Final = True
COLUMNS: Final = (
    Column("QUEUE"), Column("READY", is_number=True), Column("RUNNING", is_number=True),
    Column("SCHEDULED", is_number=True), Column("BLOCKED", is_number=True),
    Column("OLDEST READY", is_number=True), Column("BACKLOG", is_number=True, spare=1),
)  # fmt: skip


@dataclass(slots=True)
class Queue:
    """How many jobs of one queue have not ended."""

    queue: str
    ready: int = 0
    running: int = 0
    scheduled: int = 0
    blocked: int = 0
    oldest_ready_seconds: float | None = None
    slots: int = 0
    mean_seconds: float | None = None
    backlog_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Picture:
    """One backend as it is now."""

    backend: str
    database: str
    queues: list[Queue]
    at_least: list[str]
    last_minute: dict[str, int]
    workers: dict[str, int]
    problems: list[str]


def add_arguments(parser: CommandParser) -> None:
    """Declare whose it is."""
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show queues and workers, and what is wrong with them."""
    found = list(pictures(options["backend"]))
    problems = [problem for picture, _ in found for problem in picture.problems]
    if screen.is_json:
        screen.json(
            {
                "version": __version__,
                "now": iso(found[0][1]),
                "ok": not problems,
                "problems": problems,
                "backends": [asdict(picture) for picture, _ in found],
            }
        )
    else:
        for picture, _ in found:
            _draw(screen, picture)
        for problem in problems:
            screen.say(one_line(problem), "ERROR")
        if not problems:
            screen.say("All is well.", "SUCCESS")
    return PROBLEM if problems else OK


def pictures(alias: str | None) -> Iterator[tuple[Picture, datetime]]:
    """Yield every backend that is meant as it is now, and when that is."""
    for place in places(alias):
        for backend in place.backends:
            now = look.now(place.database)
            yield picture_of(backend, now), now


def picture_of(backend: DatabaseBackend, now: datetime) -> Picture:
    """Return one backend as it is now."""
    database, alias = backend.settings.database, backend.alias
    counts = look.counts(database, [alias])
    workers = seen(database, [alias])
    queues = _queues(backend, counts, now)
    _reckon(queues, workers, look.mean_seconds(database, alias, LATELY), now)
    states = [state_of(worker, now) for worker in workers]
    sums = {
        state: sum(count.jobs for count in counts if count.state == state)
        for state in (look.READY, look.RUNNING, look.SCHEDULED, look.BLOCKED)
    }
    return Picture(
        backend=alias,
        database=database,
        queues=queues,
        at_least=[state for state, jobs in sums.items() if jobs >= MOST_COUNTED],
        last_minute=look.ended_lately(database, [alias], MINUTE),
        workers={state: states.count(state) for state in ("alive", "lapsed")},
        problems=[*_problems(backend, sums, states), *_unread_queues(queues, workers, now)],
    )


def _queues(backend: DatabaseBackend, counts: list[Count], now: datetime) -> list[Queue]:
    named = {name: Queue(name) for name in sorted(backend.queues)}
    for count in counts:
        queue = named.setdefault(count.queue, Queue(count.queue))
        setattr(queue, count.state, count.jobs)
        if count.state == look.READY and count.due_at is not None:
            queue.oldest_ready_seconds = max(0.0, (now - count.due_at).total_seconds())
    return list(named.values())


def _reckon(
    queues: list[Queue], workers: list[Worker], mean: dict[str, float], now: datetime
) -> None:
    """Say of each queue how long what waits or runs there keeps the workers that take from it.

    Without any that is how long one slot needs; a job of which nothing is known counts a second.
    """
    for queue in queues:
        queue.slots = sum(
            worker.concurrency for worker in workers
            if state_of(worker, now) == "alive" and worker.takes_from(queue.queue)
        )  # fmt: skip
        queue.mean_seconds = mean.get(queue.queue)
        each = 1.0 if queue.mean_seconds is None else queue.mean_seconds
        queue.backlog_seconds = (queue.ready + queue.running) * each / max(1, queue.slots)


def _problems(backend: DatabaseBackend, sums: dict[str, int], states: list[str]) -> Iterator[str]:
    """Yield what is wrong, each with what to do."""
    option = "" if backend.alias == "default" else f" --backend {backend.alias}"
    if sums[look.READY] and "alive" not in states:
        yield (
            f"{counted(sums[look.READY]).capitalize()} of backend {backend.alias!r} could run, and "
            f"no worker is alive. Start one: python manage.py once worker{option}"
        )
    if sums[look.BLOCKED]:
        yield (
            f"{counted(sums[look.BLOCKED]).capitalize()} of backend {backend.alias!r} cannot run "
            f"now. See which: python manage.py once jobs --state blocked{option}"
        )
    for one in open_breakers(backend.settings.database, [backend.alias]):
        yield (
            f"The breaker of task {one.task!r} is open since {written(one.opened_at)}: its "
            f"attempts failed. It is tried again at {written(one.reopens_at)}. Close it by hand: "
            f"python manage.py once resume breaker {one.task}{option}"
        )
    orphans = look.count_orphans(backend.settings.database, backend.alias)
    if orphans:
        yield (
            f"Workers that are gone hold {counted(orphans)} of backend {backend.alias!r}. Any "
            "worker of it gives them back within a lease."
        )
    if "lapsed" in states:
        yield (
            f"{_lapsed(states.count('lapsed'), backend.alias)}. "
            "See which: python manage.py once workers"
        )


def _lapsed(workers: int, alias: str) -> str:
    if workers == 1:
        return f"1 worker of backend {alias!r} has not renewed its lease"
    return f"{workers} workers of backend {alias!r} have not renewed their leases"


def _unread_queues(queues: list[Queue], workers: list[Worker], now: datetime) -> Iterator[str]:
    """Yield the queues with ready jobs that no worker takes, although there are workers."""
    alive = [worker for worker in workers if state_of(worker, now) == "alive"]
    read = {name for worker in alive for name in json.loads(worker.queues)}
    if not read or "*" in read:
        return
    for queue in queues:
        if queue.ready and queue.queue not in read:
            yield (
                f"Queue {queue.queue!r} has {counted(queue.ready)} that could run, and no worker "
                f"takes from it. Start one: python manage.py once worker --queues {queue.queue}"
            )


def _draw(screen: Screen, picture: Picture) -> None:
    ended, workers = picture.last_minute, picture.workers
    screen.say(f"{picture.backend} (database {picture.database!r})", "MIGRATE_HEADING")
    screen.table(COLUMNS, [_row(queue) for queue in picture.queues])
    if picture.at_least:
        screen.say(f"Counting stopped at {MOST_COUNTED:,}: {', '.join(picture.at_least)}.")
    screen.say(
        f"Last minute: {ended['successful']:,} successful, {ended['failed']:,} failed. "
        f"Workers: {workers['alive']} alive, {workers['lapsed']} lapsed."
    )
    screen.say()


def _row(queue: Queue) -> list[Cell | str]:
    waits = queue.oldest_ready_seconds
    return [
        queue.queue,
        f"{queue.ready:,}",
        f"{queue.running:,}",
        f"{queue.scheduled:,}",
        Cell(f"{queue.blocked:,}", "WARNING" if queue.blocked else ""),
        "–" if waits is None else length(waits),
        length(queue.backlog_seconds) if queue.backlog_seconds else "–",
    ]
