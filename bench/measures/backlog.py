"""The table as it is in real life: full of other rows, or so new that nobody has looked at it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from django.db import connection

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.measures.drain import BATCH, RAW_BATCHED, drained
from bench.session import Session

FINISHED = """
    INSERT INTO once_job (args, task, status, return_value, finished_at, started_at, attempt, fence)
    SELECT '[0]', 'bench.old', 'SUCCESSFUL', 'null', statement_timestamp() - n * interval '1 s',
    statement_timestamp() - n * interval '1 s', 1, 1 FROM generate_series(1, %s) AS n"""
SCHEDULED = """
    INSERT INTO once_job (args, task, due_at, run_after)
    SELECT '[0]', 'bench.later', statement_timestamp() + interval '30 days' + n * interval '1 s',
    statement_timestamp() + interval '30 days' FROM generate_series(1, %s) AS n"""


def never_analyzed(session: Session) -> Iterator[Figure]:
    """Yield the drain of a burst into a table of which the planner knows nothing."""
    jobs = int(session.scale.jobs * 1.5)
    table.empty(as_new=True)
    session.raw.fill(jobs, table.TASKS + "nothing")
    last = table.last_job("nothing")
    with crew():
        table.wait_until_ended("nothing", last)
    reached = table.per_second("nothing")
    slices = " → ".join(f"{each:,.0f}" for each in table.per_second_by_slices("nothing", 5))
    table.empty()
    raw = session.raw.drain(jobs, BATCH)
    yield Figure("unanalyzed", f"{jobs:,} fresh rows, never analyzed", reached, "jobs/s", raw,
                 RAW_BATCHED, reached / raw, (Gate("ratio", least=0.45),), slices)  # fmt: skip


def beside(session: Session) -> Iterator[Figure]:
    """Yield the drain with very many finished and scheduled rows beside, and without."""
    rows, jobs = session.scale.backlog, session.scale.jobs
    clean = [drained(session, "nothing", jobs) for _ in range(session.scale.rounds)]
    table.empty()
    with connection.cursor() as cursor:
        cursor.execute(FINISHED, [rows])
        cursor.execute(SCHEDULED, [rows])
    full = [_drained_beside(session, jobs) for _ in range(session.scale.rounds)]
    table.empty()
    yield Figure("backlog", f"{rows:,} finished and {rows:,} scheduled beside", median(full),
                 "jobs/s", median(clean), "the same without them", median(full) / median(clean),
                 (Gate("ratio", least=0.85),))  # fmt: skip


def _drained_beside(session: Session, jobs: int) -> float:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM once_job WHERE task = %s", [table.TASKS + "nothing"])
    session.raw.fill(jobs, table.TASKS + "nothing")
    last = table.last_job("nothing")
    table.analyze()
    with crew():
        table.wait_until_ended("nothing", last)
    return table.per_second("nothing")
