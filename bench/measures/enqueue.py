"""How many jobs per second come in: one per commit, many per commit, from sync and async code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from asgiref.sync import sync_to_async
from django.db import transaction

from bench import table
from bench.figures import Figure, Gate, paired
from bench.project.work.tasks import nothing
from bench.session import Session

BATCH = 1_000
RAW_INSERT = "raw INSERT, one per commit"
RAW_MANY = "raw INSERT of 1,000"


def one_by_one(session: Session) -> Iterator[Figure]:
    """Yield jobs that each commit by themselves, and many in one transaction."""
    seconds = session.scale.seconds
    pair = paired(
        session.scale.rounds,
        lambda: _emptied(lambda: session.raw.insert(seconds)),
        lambda: _emptied(lambda: _repeated(seconds)),
    )
    gates = (Gate("ratio", least=0.6),) if session.is_postgresql else ()
    yield Figure("enqueue", "one per commit", pair.value, "jobs/s", pair.raw, RAW_INSERT,
                 pair.ratio, gates)  # fmt: skip
    reached = _emptied(lambda: asyncio.run(_repeated_async(seconds)))
    yield Figure("enqueue", "one per commit, async", reached, "jobs/s", pair.raw, RAW_INSERT,
                 reached / pair.raw)  # fmt: skip
    reached = _emptied(lambda: asyncio.run(_hopped(seconds)))
    yield Figure("enqueue", "the thread hop that async pays alone", reached, "hops/s")
    reached = _emptied(lambda: _in_one_transaction(seconds))
    yield Figure("enqueue", "one by one in one transaction", reached, "jobs/s", pair.raw,
                 RAW_INSERT, reached / pair.raw)  # fmt: skip


def in_bulk(session: Session) -> Iterator[Figure]:
    """Yield jobs by the thousand."""
    jobs = session.scale.jobs
    pair = paired(
        session.scale.rounds,
        lambda: _emptied(lambda: session.raw.insert_many(jobs, BATCH)),
        lambda: _emptied(lambda: _many(jobs, BATCH)),
    )
    gates: tuple[Gate, ...] = ()
    if session.is_postgresql:
        gates = (Gate("ratio", least=0.45), Gate("value", least=77_000))
    yield Figure("bulk", "enqueue_many of 1,000", pair.value, "jobs/s", pair.raw, RAW_MANY,
                 pair.ratio, gates)  # fmt: skip
    reached = _emptied(lambda: _many(jobs, 10_000))
    yield Figure("bulk", "enqueue_many of 10,000", reached, "jobs/s", pair.raw, RAW_MANY,
                 reached / pair.raw)  # fmt: skip


def _emptied(work: Callable[[], float]) -> float:
    table.empty()
    table.analyze()
    return work()


def _repeated(seconds: float) -> float:
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        nothing.enqueue(count)
        count += 1
    return count / (time.monotonic() - began)


async def _repeated_async(seconds: float) -> float:
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        await nothing.aenqueue(count)
        count += 1
    return count / (time.monotonic() - began)


async def _hopped(seconds: float) -> float:
    """Return how often per second asgiref goes to its thread and back, with nothing to do there."""
    hop = sync_to_async(lambda: None, thread_sensitive=True)
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        await hop()
        count += 1
    return count / (time.monotonic() - began)


def _in_one_transaction(seconds: float) -> float:
    count, began = 0, time.monotonic()
    with transaction.atomic():
        while time.monotonic() < began + seconds:
            nothing.enqueue(count)
            count += 1
    return count / (time.monotonic() - began)


def _many(jobs: int, batch: int) -> float:
    began = time.monotonic()
    for first in range(0, jobs, batch):
        nothing.enqueue_many([((first + n,), {}) for n in range(batch)])
    return jobs / (time.monotonic() - began)
