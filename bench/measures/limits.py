"""Jobs under a limit beside the same without one, and others beside many who wait for theirs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.project.work.tasks import nothing, nothing_in_ten, nothing_limited, nothing_rare
from bench.session import Session
from django_once.models.job.ready import promote

KEYS: Final = 100
WORKERS: Final = 8
BULK: Final = 5_000
WAITING: Final = 100_000


def limits(session: Session) -> Iterator[Figure]:
    """Yield jobs of a hundred keys through eight workers, of each of which two or ten may run.

    A slot is taken until its job's end is stored. So with few slots it is the time of one round
    that is measured, and with many the work of it.
    """
    jobs = session.scale.of(0.6) if session.is_postgresql else session.scale.of(0.1)
    rounds = [_round(jobs) for _ in range(session.scale.rounds)]
    for place, words in enumerate(("two", "ten"), 1):
        free, limited = (median(one[at] for one in rounds) for at in (0, place))
        ratio = median(one[place] / one[0] for one in rounds)
        gates = (Gate("ratio", least=0.5),) if session.is_postgresql else ()
        name = f"{KEYS} keys, {words} of each, {WORKERS} workers"
        yield Figure("limits", name, limited, "jobs/s", free, "the same without a limit", ratio,
                     gates)  # fmt: skip


def _round(jobs: int) -> list[float]:
    """Return what is reached without a limit, and under each."""
    reached = []
    for task in (nothing, nothing_limited, nothing_in_ten):
        table.empty()
        for begin in range(0, jobs, BULK):
            numbers = range(begin, begin + BULK)
            given = [(n,) if task is nothing else (n, n % KEYS) for n in numbers]
            task.enqueue_many([(one, {}) for one in given])
        reached.append(_drained(task.name))
    return reached


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
