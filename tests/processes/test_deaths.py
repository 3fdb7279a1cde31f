"""Processes are killed: what they held starts again, soon, and nobody pays who was not at work."""

from __future__ import annotations

import json
import signal
import time
from datetime import timedelta

import pytest

from django_once.models import Job
from django_once.models.worker import Worker
from tests.processes.tasks import (
    die,
    die_at_first,
    hold,
    hold_at_most_once,
    hold_later,
    mark,
    note_once_and_hold,
)
from tests.processes.workers import ended, is_alive, job, on_one_database, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

LEASE = 3


def kinds(row: Job) -> list[str]:
    return [entry["kind"] for entry in json.loads(row.history)]


def runner_of(ledger, tag: str) -> int:
    """Return the process in which a body last began."""
    until(lambda: ledger.lines("began", tag), what=f"{tag} begins")
    return ledger.lines("began", tag)[-1].pid


@pytest.mark.parametrize(
    "task",
    [
        hold,
        pytest.param(hold_later, marks=pytest.mark.slow),
        pytest.param(note_once_and_hold, marks=pytest.mark.slow),
    ],
)
def test_the_body_of_a_killed_child_has_begun_again_within_a_second(start, ledger, gate, task):
    start("--processes", "2", "--concurrency", "2").ready(workers=2)
    result = task.enqueue("a", str(gate))
    late = []

    for n in (1, 2, 3):
        victim = runner_of(ledger, "a")
        killed_at = time.monotonic()
        send(signal.SIGKILL, victim)
        until(lambda n=n: ledger.count("began", "a") == n + 1, what="another start")
        late.append(ledger.lines("began", "a")[n].at - killed_at)
    gate.touch()
    (row,) = ended(result)

    # The machine may have had something else to do, but hardly each time.
    assert min(late) < 1
    assert (row.status, row.attempt, row.deaths) == (Job.SUCCESSFUL, 4, 3)
    assert kinds(row) == ["died"] * 3


def test_neighbours_that_had_only_been_claimed_burn_no_attempt(start, ledger, gate):
    command = start("--concurrency", "1").ready()
    # Short bodies make the worker claim ahead.
    ended(*[mark.enqueue(f"short-{n}") for n in range(50)])
    held = hold.enqueue("held", str(gate))
    neighbours = [mark.enqueue(f"next-{n}") for n in range(30)]
    victim = runner_of(ledger, "held")

    send(signal.SIGKILL, victim)
    until(lambda: not is_alive(victim), what="the death")
    gate.touch()
    rows = ended(*neighbours)
    (row,) = ended(held)

    assert {(one.attempt, one.deaths, one.history) for one in rows} == {(1, 0, "[]")}
    assert ledger.count("ran", "held") == 1
    assert (row.attempt, row.deaths) == (2, 1)
    assert command.stop() == 0


@pytest.mark.slow
def test_a_killed_supervisors_body_begins_elsewhere_within_a_lease_and_a_half(start, ledger, gate):
    options = {"LEASE": f"{LEASE}s"}
    first = start(options=options).ready()
    result = hold.enqueue("a", str(gate))
    runner_of(ledger, "a")
    second = start(options=options).ready()

    killed_at = time.monotonic()
    send(signal.SIGKILL, first.pid)
    until(lambda: ledger.count("began", "a") == 2, what="the second start")
    gate.touch()
    (row,) = ended(result)

    again = ledger.lines("began", "a")[1]
    assert again.at - killed_at < 1.5 * LEASE
    assert again.pid in second.workers
    assert (row.status, row.attempt, row.deaths) == (Job.SUCCESSFUL, 2, 0)


@pytest.mark.slow
def test_whatever_was_killed_together_is_expired_by_those_who_live(start, ledger, gate):
    options = {"LEASE": f"{LEASE}s"}
    first = start("--processes", "2", options=options).ready(workers=2)
    held = [hold.enqueue(f"{n}", str(gate)) for n in range(2)]
    once = hold_at_most_once.enqueue("once", str(gate))
    until(lambda: ledger.count("began") == 3, what="three bodies")
    start(options=options).ready()

    killed_at = time.monotonic()
    first.kill_all()
    for n in range(2):
        until(lambda n=n: ledger.count("began", f"{n}") > 1, what="the second start")
        gate.touch()
    last = max(line.at for line in ledger.lines("began"))
    rows = ended(*held)
    (lost,) = ended(once)

    assert last - killed_at < 1.5 * LEASE + 1
    assert [row.status for row in rows] == [Job.SUCCESSFUL] * 2
    assert (lost.status, lost.reason) == (Job.FAILED, "lost")
    assert ledger.count("began", "once") == 1


@pytest.mark.slow
def test_no_child_outlives_its_supervisor(start, ledger, gate):
    command = start("--processes", "2").ready(workers=2)
    result = hold.enqueue("a", str(gate))
    runner_of(ledger, "a")
    children = command.children

    send(signal.SIGKILL, command.pid)

    until(lambda: not any(map(is_alive, children)), what="the end of all")
    # The keeper outlived it by a moment, and gave back what it knew to have begun.
    assert (job(result).status, job(result).deaths) == (Job.READY, 0)


@pytest.mark.slow
def test_jobs_do_not_notice_the_death_of_the_keeper(start, ledger, gate):
    command = start(options={"LEASE": "2s"}).ready()
    held = hold.enqueue("held", str(gate))
    runner_of(ledger, "held")
    first = command.keeper

    send(signal.SIGKILL, first)
    rows = ended(*[mark.enqueue(f"{n}") for n in range(20)])
    until(lambda: command.keeper != first, what="another keeper")
    lapses_at = Worker.objects.get(stopped_at=None).leased_until
    # That much is given only after what the first keeper gave had lapsed: only another kept it.
    until(
        lambda: Worker.objects.get(stopped_at=None).leased_until > lapses_at + timedelta(seconds=2),
        what="renewals by another",
    )
    gate.touch()
    (row,) = ended(held)

    assert {(one.status, one.attempt) for one in (*rows, row)} == {(Job.SUCCESSFUL, 1)}
    assert ledger.count("ran") == 21


@pytest.mark.slow
@on_one_database
def test_jobs_do_not_notice_a_keeper_that_hangs_since_another_takes_its_place(start, ledger, gate):
    # So long is the lease trusted that the keeper, silent for ten seconds, is replaced before.
    command = start(options={"LEASE": "20s"}).ready()
    held = hold.enqueue("held", str(gate))
    runner_of(ledger, "held")
    hung = command.keeper

    send(signal.SIGSTOP, hung)
    rows = ended(*[mark.enqueue(f"{n}") for n in range(20)])
    until(lambda: not is_alive(hung), what="the end of the hung keeper")
    until(lambda: command.keeper, what="another keeper")
    due = ended(mark.using(run_after=timedelta(seconds=0.1)).enqueue("due"))
    gate.touch()
    (row,) = ended(held)

    assert {(one.status, one.attempt) for one in (*rows, *due, row)} == {(Job.SUCCESSFUL, 1)}
    assert f"process.died keeper pid={hung}: it was killed by SIGKILL." in command.text
    assert command.stop() == 0


@pytest.mark.slow
def test_a_body_that_takes_its_process_with_it_is_tried_again_alone(start, ledger):
    start("--concurrency", "1").ready()

    rows = ended(*[die_at_first.enqueue(how, how) for how in ("exit", "segfault", "memory")])

    assert {(row.status, row.attempt, row.deaths) for row in rows} == {(Job.SUCCESSFUL, 2, 1)}
    assert [kinds(row) for row in rows] == [["died"]] * 3


@on_one_database
@pytest.mark.slow
def test_a_body_that_always_kills_its_process_ends_as_died_and_others_go_on(start, ledger):
    command = start("--concurrency", "2").ready()

    killer = die.enqueue("a", "exit")
    others = [mark.enqueue(f"{n}") for n in range(20)]
    rows = ended(*others)
    (row,) = ended(killer)

    assert (row.status, row.reason, row.deaths) == (Job.FAILED, "died", 2)
    assert {one.status for one in rows} == {Job.SUCCESSFUL}
    assert "exited with status 7" in command.text
    assert command.stop() == 0
