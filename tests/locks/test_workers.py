"""Real workers whose jobs wait for one lock: one at a time, each let go by the one before it."""

from __future__ import annotations

import pytest
from django.db import connection

from django_once.locks import lock
from django_once.models import Job
from tests.app import tasks
from tests.app.models import Note
from tests.processes.conftest import ledger as ledger
from tests.processes.conftest import start as start
from tests.processes.workers import ended, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine, pytest.mark.slow]
JOBS = 30


def test_jobs_that_wait_for_a_lock_come_one_after_the_other(start):
    with lock("turn"):
        start("--processes", "2", "--concurrency", "4").ready(workers=2)
        results = [tasks.take_a_turn.enqueue(number) for number in range(JOBS)]
        blocked = Job.objects.filter(blocked_by="lock:turn")
        until(lambda: blocked.count() == JOBS, what="all of them wait")
        claims = sum(Job.objects.values_list("fence", flat=True))
    rows = ended(*results)

    assert {(row.status, row.attempt) for row in rows} == {(Job.SUCCESSFUL, 1)}
    # One more claim for each, and a few that another was quicker than.
    assert sum(row.fence for row in rows) - claims <= JOBS * 1.5
    said = list(Note.objects.order_by("id").values_list("text", flat=True))
    assert [one.split()[0] for one in said] == ["begin", "end"] * JOBS
    assert [one.split()[1] for one in said[::2]] == [one.split()[1] for one in said[1::2]]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="its locks join no transaction")
def test_a_job_whose_holder_died_is_let_go_after_the_lease(start):
    lock("turn", lease=2).acquire().lost.set()
    start("--processes", "1").ready()
    result = tasks.take_a_turn.enqueue(1)

    assert ended(result)[0].status == Job.SUCCESSFUL
