"""How many jobs per second workers take, run and end, beside claims and settles by hand.

Between the first and the last hundredths of the jobs, by the database's own clock. The raw limit
is taken right before each drain, on the same table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate, paired
from bench.session import Session

BATCH = 500
RAW_BATCHED = "raw claim + settle by 500"
RAW_ONE = "raw claim + settle one by one"
# Ahead of the quickest peer by what was measured of it on such a machine.
PEER_ONE, PEER_TWO = 29_000, 46_000
LEAST = {"sqlite": 5_000, "mariadb": 2_000, "mysql": 2_000}


def drained(
    session: Session, task: str, jobs: int, *options: str, processes: int = 1,
    argument: str = "{n}", delivery: str = "at_least_once",
) -> float:  # fmt: skip
    """Return how many jobs of a task per second these workers end, from a table of their own."""
    table.empty()
    session.raw.fill(jobs, table.TASKS + task, argument, delivery=delivery)
    last = table.last_job(task)
    table.analyze()
    with crew(*options, processes=processes):
        table.wait_until_ended(task, last)
    return table.per_second(task)


def raw_drained(session: Session, jobs: int, batch: int) -> float:
    """Return the raw limit on an empty table."""
    table.empty()
    return session.raw.drain(jobs, batch)


def one_process(session: Session) -> Iterator[Figure]:
    """Yield no-op jobs through one worker process with its default threads."""
    jobs = session.scale.jobs if session.is_postgresql else session.scale.of(0.3)
    pair = paired(
        session.scale.rounds,
        lambda: raw_drained(session, jobs, BATCH),
        lambda: drained(session, "nothing", jobs),
    )
    gates: tuple[Gate, ...] = (Gate("value", least=LEAST.get(session.kind, 0)),)
    if session.is_postgresql:
        gates = (Gate("ratio", least=0.45), Gate("value", least=PEER_ONE))
    yield Figure("drain", "1 process, 4 threads", pair.value, "jobs/s", pair.raw, RAW_BATCHED,
                 pair.ratio, gates)  # fmt: skip
    reached = drained(session, "nothing", jobs, "--concurrency", "1")
    yield Figure("drain", "1 process, 1 thread", reached, "jobs/s", pair.raw, RAW_BATCHED,
                 reached / pair.raw)  # fmt: skip
    reached = drained(session, "nothing_async", jobs)
    yield Figure("drain", "1 process, async bodies", reached, "jobs/s", pair.raw, RAW_BATCHED,
                 reached / pair.raw)  # fmt: skip


def two_processes(session: Session) -> Iterator[Figure]:
    """Yield no-op jobs through two worker processes."""
    jobs = session.scale.jobs if session.is_postgresql else session.scale.of(0.3)
    pair = paired(
        session.scale.rounds,
        lambda: raw_drained(session, jobs, BATCH),
        lambda: drained(session, "nothing", jobs, processes=2),
    )
    gates = (Gate("value", least=PEER_TWO),) if session.is_postgresql else ()
    yield Figure("drain2", "2 processes", pair.value, "jobs/s", pair.raw, RAW_BATCHED,
                 pair.ratio, gates)  # fmt: skip


def deliveries(session: Session) -> Iterator[Figure]:
    """Yield the deliveries that commit each job by itself."""
    jobs = session.scale.of(0.05)
    for task, delivery, words, least in (
        ("effect", "exactly_once", "exactly_once, one INSERT each", 1.2),
        ("nothing_twice", "at_most_once", "at_most_once", 0.9),
    ):
        pair = paired(
            session.scale.rounds,
            lambda: raw_drained(session, jobs, 1),
            partial(drained, session, task, jobs, delivery=delivery),
        )
        gates = (Gate("ratio", least=least),) if session.is_postgresql else ()
        yield Figure("deliveries", words, pair.value, "jobs/s", pair.raw, RAW_ONE, pair.ratio,
                     gates)  # fmt: skip


def awaited(session: Session) -> Iterator[Figure]:
    """Yield a hundred coroutines at once that each sleep 10 ms."""
    jobs = session.scale.of(0.3)
    reached = drained(session, "sleep_async", jobs, "--concurrency", "100", argument="0.01")
    gates = (Gate("value", least=5_000),) if session.is_postgresql else ()
    yield Figure("async", "100 × 10 ms sleeps", reached, "jobs/s", 10_000, "no time but the sleep",
                 reached / 10_000, gates)  # fmt: skip


def threads(session: Session) -> Iterator[Figure]:
    """Yield bodies of 1 ms in eight threads, beside the same threads without a database."""
    jobs = session.scale.of(0.3)
    pair = paired(
        session.scale.rounds,
        lambda: _slept(jobs, 8, 0.001),
        lambda: drained(session, "sleep", jobs, "--concurrency", "8", argument="0.001"),
    )
    gates = (Gate("ratio", least=0.8),) if session.is_postgresql else ()
    yield Figure("threads", "8 threads, bodies of 1 ms", pair.value, "jobs/s", pair.raw,
                 "the same threads, no database", pair.ratio, gates)  # fmt: skip


def _slept(jobs: int, threads: int, seconds: float) -> float:
    """Return how many sleeps per second so many threads get through."""
    waiting: SimpleQueue[float] = SimpleQueue()
    for _ in range(jobs):
        waiting.put(seconds)

    def work() -> None:
        while True:
            try:
                time.sleep(waiting.get_nowait())
            except Empty:
                return

    return jobs / _seconds_of([threading.Thread(target=work) for _ in range(threads)])


def _seconds_of(threads: list[threading.Thread]) -> float:
    began = time.monotonic()
    verbs: list[Callable[[], None]] = [thread.start for thread in threads]
    verbs += [thread.join for thread in threads]
    for verb in verbs:
        verb()
    return time.monotonic() - began
