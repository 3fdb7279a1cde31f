"""Workers are asked to drain by a row: they and their siblings finish what runs, and end."""

from __future__ import annotations

import pytest

from django_once.models import Job
from django_once.models.worker import Worker, ask_to_drain
from tests.processes.tasks import hold, mark
from tests.processes.workers import on_one_database, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


@on_one_database
def test_asked_to_drain_siblings_finish_what_runs_and_end(start, ledger, tmp_path):
    gate = tmp_path / "gate"
    command = start("--processes", "2", "--concurrency", "1").ready(workers=2)
    hold.enqueue("held", str(gate))
    until(lambda: ledger.count("began"), what="the body has begun")
    one = Worker.objects.filter(lost_at=None, stopped_at=None)[0]

    assert len(ask_to_drain("default", one.pk)) == 2
    until(
        lambda: Worker.objects.filter(stopped_at__isnull=False).exists(), what="the idle one ends"
    )
    gate.touch()
    assert command.wait(60) == 0

    assert Job.objects.get().status == Job.SUCCESSFUL
    assert not Worker.objects.filter(lost_at=None, stopped_at=None).exists()
    waits = mark.enqueue("later")
    assert Job.objects.get(pk=waits.id).status == Job.READY
    assert ask_to_drain("default", one.pk) == []
