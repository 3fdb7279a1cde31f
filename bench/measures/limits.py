"""Jobs under a limit beside the same without one, and others beside many who wait for theirs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.project.work.tasks import nothing, nothing_limited, nothing_rare
from bench.session import Session
from django_once.models.job.ready import promote

KEYS: Final = 100
WORKERS: Final = 8
BULK: Final = 5_000
WAITING: Final = 100_000


def limits(session: Session) -> Iterator[Figure]:
    """Yield jobs of a hundred keys, of each of which two may run, through eight workers."""
    jobs = session.scale.of(0.6) if session.is_postgresql else session.scale.of(0.1)
    pairs = []
    for _ in range(session.scale.rounds):
        table.empty()
        for begin in range(0, jobs, BULK):
            nothing.enqueue_many([((n,), {}) for n in range(begin, begin + BULK)])
        free = _drained("nothing")
        table.empty()
        for begin in range(0, jobs, BULK):
            nothing_limited.enqueue_many([((n, n % KEYS), {}) for n in range(begin, begin + BULK)])
        pairs.append((free, _drained("nothing_limited")))
    free, limited = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    gates = (Gate("ratio", least=0.5),) if session.is_postgresql else ()
    yield Figure("limits", f"{KEYS} keys, two of each, {WORKERS} workers", limited, "jobs/s", free,
                 "the same without a limit", median(b / a for a, b in pairs), gates)  # fmt: skip


def waiting(session: Session) -> Iterator[Figure]:
    """Yield jobs without a limit, while very many of somebody else wait for theirs."""
    jobs = session.scale.jobs if session.is_postgresql else session.scale.of(0.2)
    others = WAITING if session.is_postgresql else WAITING // 10
    pairs = []
    for _ in range(session.scale.rounds):
        table.empty()
        session.raw.fill(jobs, table.TASKS + "nothing")
        alone = _drained("nothing", 1)
        table.empty()
        for begin in range(0, others, BULK):
            nothing_rare.enqueue_many([((n,), {}) for n in range(begin, begin + BULK)])
        while promote("default", BULK):
            continue
        session.raw.fill(jobs, table.TASKS + "nothing")
        pairs.append((alone, _drained("nothing", 1)))
    alone, beside = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    gates = (Gate("ratio", least=0.9),) if session.is_postgresql else ()
    yield Figure("waiting", f"{others:,} wait for a limit", beside, "jobs/s", alone,
                 "the same alone", median(b / a for a, b in pairs), gates)  # fmt: skip


def _drained(task: str, processes: int = WORKERS) -> float:
    table.analyze()
    with crew(processes=processes):
        table.wait_until_all_ended(task)
    return table.per_second(task)
