"""Receivers of signals are other people's code: nothing they do harms a worker or a job."""

from __future__ import annotations

import pytest

from django_once.models import Job
from tests.processes.tasks import mark, mark_later, note_once
from tests.processes.workers import ended, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


def test_receivers_that_raise_or_leave_kill_no_worker_and_change_no_job(start, ledger):
    command = start("--concurrency", "2", receivers=True).ready()
    before = command.children

    results = [task.enqueue(f"{n}") for n in range(5) for task in (mark, mark_later, note_once)]
    rows = ended(*results)

    assert {(row.status, row.attempt) for row in rows} == {(Job.SUCCESSFUL, 1)}
    assert command.children == before
    ids = sorted(result.id for result in results)
    until(lambda: ledger.count("heard-SUCCESSFUL") == 15, what="every end told")
    assert sorted(ledger.tags("heard-RUNNING")) == ids
    assert sorted(ledger.tags("heard-SUCCESSFUL")) == ids
    assert command.stop() == 0
