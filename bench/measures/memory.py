"""How much memory a child takes, and whether it takes more the longer it works."""

from __future__ import annotations

from collections.abc import Iterator

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.session import Session


def child(session: Session) -> Iterator[Figure]:
    """Yield the memory of one child after some jobs, and after five times as many."""
    jobs = session.scale.jobs
    table.empty()
    with crew() as workers:
        _run(session, jobs)
        first = workers.megabytes_of_a_worker()
        for _ in range(4):
            _run(session, jobs)
        last = workers.megabytes_of_a_worker()
    yield Figure("memory", f"a child after {5 * jobs:,} jobs", last, "MB",
                 gates=(Gate("value", most=60.0),), note="of shared pages its part")  # fmt: skip
    yield Figure("memory", f"more than after the first {jobs:,}", last - first, "MB",
                 gates=(Gate("value", most=3.0),))  # fmt: skip


def _run(session: Session, jobs: int) -> None:
    session.raw.fill(jobs, table.TASKS + "nothing")
    last = table.last_job("nothing")
    table.wait_until_ended("nothing", last)
