"""Many priorities at once, and a job that commits after its place in the order has passed."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from django.db import connections, transaction

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.measures.pickup import started
from bench.project.work.tasks import note
from bench.session import Session

ALL_PRIORITIES = 201


def priorities(session: Session) -> Iterator[Figure]:
    """Yield the drain of jobs under every priority there is, beside that of jobs under one."""
    jobs = session.scale.jobs if session.is_postgresql else session.scale.of(0.3)
    pairs = [
        (_drained(session, jobs, 1), _drained(session, jobs, ALL_PRIORITIES))
        for _ in range(session.scale.rounds)
    ]
    alone, mixed = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    gates = (Gate("ratio", least=0.9),) if session.is_postgresql else ()
    yield Figure("lanes", f"{ALL_PRIORITIES} priorities", mixed, "jobs/s", alone, "one priority",
                 median(b / a for a, b in pairs), gates)  # fmt: skip


def _drained(session: Session, jobs: int, of_priorities: int) -> float:
    table.empty()
    session.raw.fill(jobs, table.TASKS + "nothing", priorities=of_priorities)
    last = table.last_job("nothing")
    table.analyze()
    with crew():
        table.wait_until_ended("nothing", last)
    return table.per_second("nothing")


def late(session: Session) -> Iterator[Figure]:
    """Yield how long a job waits that commits when later ones have been claimed, under load."""
    samples = 3 if session.scale.rounds == 1 else 7
    table.empty()
    waited = []
    with crew(), tempfile.TemporaryDirectory(prefix="once-bench-") as directory:
        page = Path(directory) / "starts"
        for number in range(samples):
            waited.append(_commit_late(session, number, page))
    yield Figure("late", "worst wait of a lower position", 1_000 * max(waited), "ms",
                 gates=(Gate("value", most=1_000.0),), note=f"{samples} samples")  # fmt: skip


def _commit_late(session: Session, number: int, page: Path) -> float:
    """Store a job, let thousands pass it, commit it; return how long it waits from there."""
    has_stored, may_commit = threading.Event(), threading.Event()
    committed: list[int] = []

    def enqueue() -> None:
        with transaction.atomic():
            note.enqueue(number, str(page))
            has_stored.set()
            may_commit.wait(30)
            committed.append(time.monotonic_ns())
        connections.close_all()

    thread = threading.Thread(target=enqueue)
    thread.start()
    has_stored.wait(30)
    # Enough that workers are in the midst of them when the early one commits.
    session.raw.fill(session.scale.of(0.3), table.TASKS + "nothing")
    time.sleep(0.3)
    may_commit.set()
    thread.join()
    until = time.monotonic() + 30
    while (at := started(page, number)) is None:
        if time.monotonic() > until:
            raise TimeoutError("A job whose position was passed was not taken within 30 s.")
        time.sleep(0.01)
    table.wait_until_ended("nothing", table.last_job("nothing"))
    return (at - committed[0]) / 1e9
