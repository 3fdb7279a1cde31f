"""Workers that have nothing to do ask little, use little, and still come soon."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.db import connection

from tests.processes.tasks import mark
from tests.processes.workers import ended, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

# Sessions tell the statistics what they did with their next statement, or after ten seconds.
SETTLING = 12
SECONDS = 8


def cpu_seconds(*pids: int) -> float:
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def transactions() -> int:
    """Return how many transactions this database has ended, as its statistics know by now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database "
            "WHERE datname = current_database()"
        )
        return cursor.fetchone()[0]


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor == "mysql", reason="It is polled like SQLite.")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts by Linux's /proc")
def test_an_idle_worker_costs_half_a_percent_and_a_query_a_second(start, ledger):
    command = start(options={"LEASE": "60s", "POLL": "1s"}).ready()
    ended(mark.enqueue("a"))
    time.sleep(SETTLING)
    pids = [command.pid, *command.children]

    before, began = cpu_seconds(*pids), time.monotonic()
    asked = transactions() if connection.vendor == "postgresql" else 0
    time.sleep(SECONDS)
    used = cpu_seconds(*pids) - before
    lasted = time.monotonic() - began

    # A tick is a hundredth of a second: three of them are within what is measured here.
    assert used / lasted <= 0.005 + 0.03 / SECONDS
    if connection.vendor == "postgresql":
        # Ten are for this session, and for what comes once in half a minute and may come now: a
        # renewal, a round of the janitor, the server's own vacuum.
        assert transactions() - asked <= 1.0 * lasted + 10


@pytest.mark.slow
def test_a_worker_that_nothing_wakes_comes_fast_after_work_and_slower_when_idle(start, ledger):
    start("--concurrency", "1", options={"POLL": "3s", "WAKEUP": "poll"}).ready()
    ended(mark.enqueue("first"))

    late = []
    for n in range(5):
        (row,) = ended(mark.enqueue(f"{n}"))
        late.append((row.started_at - row.enqueued_at).total_seconds())

    assert min(late) < 0.5


@pytest.mark.slow
def test_processes_of_a_stopped_worker_leave_no_connection(start, ledger):
    if connection.vendor != "postgresql":
        pytest.skip("connections are counted by PostgreSQL's statistics")
    command = start("--processes", "2").ready(workers=2)
    ended(*[mark.enqueue(f"{n}") for n in range(20)])

    assert command.stop() == 0

    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            return cursor.fetchone()[0]

    until(lambda: others() == 0, what="the end of all sessions")
