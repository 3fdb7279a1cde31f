"""Bodies that take their process with them, or hang in it: they pay, and nobody beside them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from django.db import transaction

from django_once.models import Job
from tests.app.models import Note
from tests.processes.tasks import hold, mark
from tests.processes.workers import ROOT, ended, names_of_databases, until
from tests.survival.bodies import (
    FATAL,
    HANGS,
    ask_for_too_much,
    die_always,
    hang_in,
    hang_in_a_loop,
    refuse_to_end,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

DIES_FIRST = """
import django, os, signal
django.setup()
from django.db import transaction
from tests.app.models import Note
from tests.processes.tasks import mark
with transaction.atomic():
    Note.objects.create(text="business")
    mark.enqueue("a")
    mark.enqueue_many([(("b",), {}), (("c",), {})])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_dies_before_its_commit_has_enqueued_nothing(start, ledger):
    start().ready()
    told = {"databases": names_of_databases(), "options": {}, "receivers": False}
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
        "ONCE_TEST_PROCESSES": json.dumps(told),
    }  # fmt: skip
    died = subprocess.run([sys.executable, "-c", DIES_FIRST], env=environment, check=False)
    ended(mark.enqueue("after"))

    assert died.returncode == -signal.SIGKILL
    assert (Job.objects.count(), Note.objects.count()) == (1, 0)
    assert ledger.tags() == ["after"]


@pytest.mark.slow
def test_a_body_that_always_kills_its_process_pays_alone(start, ledger):
    command = start("--concurrency", "2").ready()
    with transaction.atomic():
        killers = {how: die_always.enqueue(how, how) for how in FATAL}
        neighbours = [mark.enqueue(f"{n}") for n in range(20)]

    rows = dict(zip(killers, ended(*killers.values(), seconds=60), strict=True))
    beside = ended(*neighbours)

    for how, row in rows.items():
        last = json.loads(row.history)[-1]
        assert (row.status, row.reason, row.deaths) == ("FAILED", "died", 2), how
        assert (last["kind"], FATAL[how][1] in json.dumps(last)) == ("died", True), last
    # Two may have been at work at once; from the second try on each runs alone.
    assert max(ledger.count("began", how) for how in FATAL) <= 2 + len(FATAL)
    assert {row.status for row in beside} == {"SUCCESSFUL"}
    assert {row.failures for row in beside} == {0}
    assert command.stop() == 0


def test_a_limit_of_memory_that_python_sees_is_a_failure_and_no_death(start, ledger):
    command = start("--concurrency", "1").ready()
    before = command.workers
    (row,) = ended(ask_for_too_much.enqueue("a"))
    ended(mark.enqueue("after"))

    assert (row.status, row.reason, row.deaths) == ("FAILED", "raised", 0)
    assert "MemoryError" in row.history
    assert command.workers == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "where"),
    [*((hang_in, where) for where in HANGS), (hang_in_a_loop, "event"), (refuse_to_end, "")],
)
def test_whatever_a_body_hangs_in_it_ends_at_its_timeout(start, ledger, gate, task, where):
    start("--concurrency", "3").ready()
    neighbour = hold.enqueue("neighbour", str(gate))
    until(lambda: ledger.count("began", "neighbour"), what="the neighbour")

    (row,) = ended(task.enqueue("a", where))
    gate.touch()
    (beside,) = ended(neighbour)
    ended(mark.enqueue("after"))

    assert (row.status, row.reason, row.attempt, row.deaths) == ("FAILED", "timed_out", 1, 0)
    (entry,) = json.loads(row.history)
    assert entry["kind"] == "timed_out"
    # Half a second is its timeout; the database wrote both times.
    began = row.started_at or row.enqueued_at
    assert (row.finished_at - began).total_seconds() < 0.5 + 1 + 0.3
    assert (beside.status, beside.failures, beside.deaths) == ("SUCCESSFUL", 0, 0)
