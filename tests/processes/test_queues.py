"""Which jobs run, where, in which order and when."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.db import connection

from django_once.models import Job
from tests.processes.tasks import (
    chain,
    die_at_first,
    hold,
    hold_later,
    mark,
    mark_later,
    swallow,
)
from tests.processes.workers import ended, job, on_one_database, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


def test_queues_are_taken_in_order_of_preference_then_by_priority_then_first_come(start, ledger):
    for tag, queue, priority in (
        ("low-1", "low", 0), ("mail-1", "mail", 0), ("low-urgent", "low", 50),
        ("mail-2", "mail", 0), ("mail-urgent", "mail", 10),
    ):  # fmt: skip
        mark.using(queue_name=queue, priority=priority).enqueue(tag)

    command = start("--queues", "mail,low", "--concurrency", "1", "--batch")

    assert command.wait() == 0
    assert ledger.tags() == ["mail-urgent", "mail-1", "mail-2", "low-urgent", "low-1"]


@pytest.mark.slow
def test_a_worker_leaves_queues_that_are_not_its_own(start, ledger):
    mark.using(queue_name="low").enqueue("left")
    mark.using(queue_name="mail").enqueue("taken")

    assert start("--queues", "mail", "--batch").wait() == 0
    assert ledger.tags() == ["taken"]

    assert start("--exclude-queues", "low", "--batch").wait() == 0
    assert ledger.tags() == ["taken"]

    assert start("--queues", "*", "--batch").wait() == 0
    assert ledger.tags() == ["taken", "left"]


def test_a_batch_drains_what_its_own_jobs_enqueue_and_ends_well(start, ledger):
    chain.enqueue("a", 5)
    mark_later.enqueue("b")

    command = start("--batch")

    assert command.wait() == 0
    assert sorted(ledger.tags()) == ["a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "b"]


@pytest.mark.slow
def test_a_worker_exits_after_so_many_tasks_and_leaves_the_others(start, ledger):
    results = [mark.enqueue(f"{n}") for n in range(7)]

    command = start("--max-tasks", "3", "--concurrency", "2")

    assert command.wait() == 0
    assert sorted(ledger.tags()) == ["0", "1", "2"]
    assert [job(result).status for result in results].count("READY") == 4
    assert {job(result).attempt for result in results[3:]} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_batch_whose_process_dies_still_runs_what_that_had_held(start, ledger, processes):
    result = die_at_first.enqueue("a", "exit")

    command = start("--batch", "--processes", processes)

    assert command.wait() == 0
    assert (job(result).status, job(result).deaths) == (Job.SUCCESSFUL, 1)
    assert ledger.count("ran", "a") == 1


@pytest.mark.slow
@on_one_database
def test_a_share_of_tasks_is_not_begun_anew_by_a_process_that_replaces_another(start, ledger, gate):
    command = start("--max-tasks", "4", "--concurrency", "1").ready()
    ended(*[mark.enqueue(f"{n}") for n in range(3)])
    held = hold.enqueue("held", str(gate))
    until(lambda: ledger.count("began"), what="a body")

    send(signal.SIGKILL, ledger.lines("began")[0].pid)
    gate.touch()
    results = [mark.enqueue(f"more-{n}") for n in range(3)]

    assert command.wait() == 0
    assert ledger.count("ran") == 4
    assert [job(one).status for one in (held, *results)].count(Job.READY) == 3
    assert command.last_line.endswith(" has stopped after 4 jobs.")


@pytest.mark.slow
@on_one_database
def test_more_processes_than_tasks_leave_some_with_nothing_to_do(start, ledger):
    results = [mark.enqueue(f"{n}") for n in range(4)]

    command = start("--max-tasks", "2", "--processes", "3")

    assert command.wait() == 0
    assert ledger.count("ran") == 2
    assert [job(result).status for result in results].count("READY") == 2


@pytest.mark.slow
@on_one_database
def test_a_process_that_is_too_large_from_the_start_gets_something_done(start, ledger):
    command = start("--max-memory", "1", "--concurrency", "1").ready()

    for n in range(3):
        ended(mark.enqueue(f"{n}"))
        until(lambda grown=n + 1: command.text.count("worker.grown") == grown, what="a new process")

    assert command.stop() == 0
    assert len({line.pid for line in ledger.lines("ran")}) == 3
    assert "process.died" not in command.text


@pytest.mark.slow
@on_one_database
def test_a_process_that_has_grown_is_replaced(start, ledger):
    command = start("--max-memory", "200", "--concurrency", "1").ready()
    (before,) = command.workers

    ended(swallow.enqueue("grown", 300))
    until(lambda: command.workers not in ([], [before]), what="another process")
    ended(mark.enqueue("after"))

    assert ledger.lines("ran", "after")[0].pid != before
    assert command.stop() == 0


@pytest.mark.parametrize(("task", "threads"), [(hold, 3), (hold_later, 1)])
def test_so_many_bodies_run_at_once_in_threads_or_in_one_loop(start, ledger, gate, task, threads):
    start("--concurrency", "3").ready()

    results = [task.enqueue(f"{n}", str(gate)) for n in range(7)]
    until(lambda: ledger.count("began") >= 3, what="three bodies")
    began = ledger.lines("began")
    gate.touch()
    ended(*results)

    assert len(began) == 3
    assert len({line.thread for line in began}) == threads


def test_a_job_for_later_starts_when_it_is_due(start, ledger):
    start(options={"POLL": "1s"}).ready()

    later = [timedelta(seconds=seconds) for seconds in (0.8, 1.2, 1.6)]
    rows = ended(*[mark.using(run_after=after).enqueue(f"{after}") for after in later])

    late = [(row.started_at - row.due_at).total_seconds() for row in rows]
    assert 0 <= min(late) < (0.1 if connection.vendor == "postgresql" else 1.0)


@pytest.mark.slow
def test_an_idle_worker_is_woken_where_the_database_can(start, ledger):
    start(options={"POLL": "2s"}).ready()
    ended(mark.enqueue("first"))

    late = []
    for n in range(3):
        (row,) = ended(mark.enqueue(f"{n}"))
        late.append((row.started_at - row.enqueued_at).total_seconds())

    assert min(late) < (0.1 if connection.vendor == "postgresql" else 2.2)


@pytest.mark.slow
@on_one_database
def test_an_interval_is_kept(start, ledger):
    command = start("--interval", "0.1", options={"POLL": "1h", "WAKEUP": "poll"}).ready()

    for n in range(3):
        ended(mark.enqueue(f"{n}"))

    assert "polling every 0.1 s" in command.text


@pytest.mark.slow
@on_one_database
def test_results_show_the_name_of_their_worker(start, ledger):
    result = mark.enqueue("a")

    start("--worker-id", "ann", "--batch").wait()
    result.refresh()

    assert result.worker_ids == ["ann"]


@pytest.mark.slow
@on_one_database
def test_each_backend_has_workers_of_its_own(start, ledger):
    mark.enqueue("default")
    start("--backend", "second", "--batch").wait()
    assert ledger.tags() == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_jobs_of_another_database_are_run_from_there(start, ledger):
    result = mark.using(backend="other").enqueue("there")

    assert start("--backend", "other", "--batch").wait() == 0
    result.refresh()

    assert result.return_value == "there"
