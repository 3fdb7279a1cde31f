"""Processes die at named points of the protocol; each leaves what the guarantees say, no more."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from typing import Any

import pytest

from django_once.models import Job
from tests.app.models import Note
from tests.processes.tasks import hold, mark, mark_at_most_once, mark_later, note_once
from tests.processes.workers import ended, job, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


@dataclass(frozen=True)
class Crash:
    """A row of the guarantees: where the process dies, and what must be there in the end."""

    row: str
    point: str
    task: Any
    status: str
    attempts: int
    deaths: int = 0
    runs: int = 1
    effects: int = 0
    reason: str = ""


CRASHES = [
    Crash("C3", "claim.committed", mark, "SUCCESSFUL", 1),
    Crash("C3", "claim.committed", mark_later, "SUCCESSFUL", 1),
    Crash("C3", "claim.committed", note_once, "SUCCESSFUL", 1, effects=1),
    Crash("C3", "claim.committed", mark_at_most_once, "SUCCESSFUL", 1),
    Crash("A1", "start.sending", mark_at_most_once, "SUCCESSFUL", 1),
    Crash("A3", "start.committed", mark_at_most_once, "FAILED", 1, 1, runs=0, reason="lost"),
    Crash("X1", "exactly_once.begun", note_once, "SUCCESSFUL", 2, 1, effects=1),
    Crash("X1", "exactly_once.returned", note_once, "SUCCESSFUL", 2, 1, runs=2, effects=1),
    Crash("X1", "exactly_once.verified", note_once, "SUCCESSFUL", 2, 1, runs=2, effects=1),
    Crash("S2", "exactly_once.committed", note_once, "SUCCESSFUL", 1, effects=1),
    Crash("S1", "settle.sending", mark, "SUCCESSFUL", 1, runs=2),
    Crash("S2", "settle.committed", mark, "SUCCESSFUL", 1),
]


@pytest.mark.parametrize("crash", CRASHES, ids=lambda one: f"{one.row}-{one.point}-{one.task.name}")
def test_a_worker_that_dies_at_a_point_leaves_what_was_promised(start, ledger, tmp_path, crash):
    fuse = tmp_path / "fuse"
    command = start(
        environment={"ONCE_CRASH_POINT": f"{crash.point}:kill", "ONCE_CRASH_FUSE": str(fuse)}
    ).ready()
    (before,) = command.workers

    result = crash.task.enqueue("a")
    until(fuse.exists, what="the crash")
    began = time.monotonic()
    (row,) = ended(result)
    repaired = time.monotonic() - began
    until(lambda: command.workers not in ([], [before]), what="another process")

    found = (row.status, row.attempt, row.deaths, row.reason)
    assert found == (crash.status, crash.attempts, crash.deaths, crash.reason)
    assert ledger.count("began" if crash.task is note_once else "ran", "a") == crash.runs
    assert Note.objects.count() == crash.effects
    assert repaired < 5
    assert command.stop() == 0


@pytest.mark.slow
def test_a_keeper_that_dies_between_two_renewals_costs_nobody_anything(
    start, ledger, gate, tmp_path
):
    fuse = tmp_path / "fuse"
    point = {"ONCE_CRASH_POINT": "renewal.committed:kill:2", "ONCE_CRASH_FUSE": str(fuse)}
    command = start(environment=point).ready()
    result = hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began", "a"), what="the body")
    keepers = command.keeper

    until(fuse.exists, what="the crash")
    until(lambda: command.keeper != keepers, what="another keeper")
    time.sleep(3.5)
    gate.touch()
    (row,) = ended(result)

    assert (row.status, row.attempt, row.fence) == (Job.SUCCESSFUL, 1, 1)
    assert command.stop() == 0


@pytest.mark.slow
def test_a_sweep_that_dies_between_its_two_halves_is_finished_by_the_next(
    start, ledger, gate, tmp_path
):
    first = start().ready()
    result = hold.enqueue("a", str(gate))
    # Only a start on record is evidence, once supervisor and keeper are dead as well.
    until(lambda: job(result).started_at, what="the body, on record")
    fuse = tmp_path / "fuse"
    point = {"ONCE_CRASH_POINT": "expire.committed:kill:8", "ONCE_CRASH_FUSE": str(fuse)}
    first.kill_all()
    start(environment=point).ready()

    until(fuse.exists, seconds=20, what="the crash")
    gate.touch()
    (row,) = ended(result, seconds=20)

    assert (row.status, row.attempt, row.fence) == (Job.SUCCESSFUL, 2, 2)
    assert [entry["kind"] for entry in json.loads(row.history)] == ["lost"]


@pytest.mark.slow
def test_a_stopped_worker_that_wakes_late_is_refused(start, ledger, gate):
    first = start(options={"LEASE": "2s"}).ready()
    result = hold.enqueue("a", str(gate))
    until(lambda: job(result).started_at, what="the body, on record")
    start(options={"LEASE": "2s"}).ready()

    for process in (first.pid, *first.children):
        send(signal.SIGSTOP, process)
    until(lambda: ledger.count("began", "a") == 2, seconds=20, what="the second start")
    for process in (first.pid, *first.children):
        send(signal.SIGCONT, process)
    gate.touch()
    (row,) = ended(result)

    assert (row.status, row.attempt, row.fence) == (Job.SUCCESSFUL, 2, 2)
    assert row.return_value == '"a"'
