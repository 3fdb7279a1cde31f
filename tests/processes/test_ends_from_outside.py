"""Bodies that do not end are ended; what stood beside or behind them does not pay for it."""

from __future__ import annotations

import json
import signal
import time

import pytest
from django.db import transaction

from django_once.models import Job
from tests.processes.tasks import (
    hang,
    hang_twice,
    hog,
    hog_too_long,
    hold,
    hold_at_most_once,
    mark,
    wedge,
)
from tests.processes.workers import ended, is_alive, job, on_one_database, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


@pytest.mark.parametrize("task", [hang, hog_too_long])
def test_a_body_is_ended_within_a_second_after_its_timeout(start, ledger, task):
    start("--concurrency", "2").ready()

    result = task.enqueue("a")
    (row,) = ended(result)

    assert (row.status, row.reason, row.deaths, row.attempt) == (Job.FAILED, "timed_out", 0, 1)
    (entry,) = json.loads(row.history)
    assert (entry["kind"], entry["error"].rpartition(".")[2]) == ("timed_out", "TimedOut")
    # Half a second is its timeout; the database wrote both times.
    assert 0.4 < (row.finished_at - row.enqueued_at).total_seconds() < 0.5 + 1 + 0.3
    ended(mark.enqueue("after"))


@pytest.mark.slow
def test_a_body_that_overran_is_tried_again_as_its_policy_says(start, ledger):
    start("--concurrency", "1").ready()

    (row,) = ended(hang_twice.enqueue("a"))

    assert ledger.count("began", "a") == 2
    assert (row.status, row.reason, row.attempt, row.failures) == (
        Job.FAILED, "timed_out", 2, 2,
    )  # fmt: skip


@pytest.mark.slow
def test_siblings_of_a_body_that_overran_are_charged_with_nothing(start, ledger, gate):
    start("--concurrency", "3").ready()
    once = hold_at_most_once.enqueue("once", str(gate))
    beside = hold.enqueue("beside", str(gate))
    until(lambda: ledger.count("began") == 2, what="two bodies")

    late = hang.enqueue("late")
    behind = [mark.enqueue(f"{n}") for n in range(10)]
    (row,) = ended(late)
    until(lambda: ledger.count("began", "beside") == 2, what="the sibling's second start")
    gate.touch()
    (sibling,), (lost,) = ended(beside), ended(once)

    assert row.reason == "timed_out"
    assert (sibling.status, sibling.deaths, sibling.attempt) == (Job.SUCCESSFUL, 0, 2)
    assert (lost.status, lost.reason) == (Job.FAILED, "lost")
    assert {(one.attempt, one.history) for one in ended(*behind)} == {(1, "[]")}


@on_one_database
@pytest.mark.slow
def test_a_silent_worker_without_a_body_is_replaced(start, ledger):
    command = start("--concurrency", "1", options={"LEASE": "2s"}).ready()
    (before,) = command.workers
    ended(wedge.enqueue("a", 60))

    until(lambda: not is_alive(before), what="the end of the wedged process")
    (row,) = ended(mark.enqueue("after"))

    assert row.attempt == 1
    assert ledger.lines("ran", "after")[0].pid != before
    assert "without a sign of life" in command.text


@pytest.mark.slow
def test_what_waits_behind_a_body_that_holds_the_interpreter_goes_to_others(start, ledger):
    first = start("--concurrency", "2", options={"LEASE": "3s"}).ready()
    ended(*[mark.enqueue(f"short-{n}") for n in range(100)])
    (busy,) = first.workers

    with transaction.atomic():
        results = [hog.enqueue("hog", 8), *[mark.enqueue(f"{n}") for n in range(20)]]
    until(lambda: ledger.count("began", "hog"), what="the hog")
    start("--concurrency", "2", options={"LEASE": "3s"}).ready()
    rows = ended(*results)

    assert [row.status for row in rows] == [Job.SUCCESSFUL] * 21
    assert {(row.attempt, row.history) for row in rows} == {(1, "[]")}
    assert sorted(ledger.tags("ran")) == sorted(
        ["hog", *(f"{n}" for n in range(20)), *(f"short-{n}" for n in range(100))]
    )
    # Its lease was renewed all the time: nobody took the body away.
    assert ledger.lines("ran", "hog")[0].pid == busy


@pytest.mark.slow
def test_a_claim_that_was_given_back_meanwhile_is_not_started_by_the_one_who_slept(start, ledger):
    first = start("--concurrency", "1", options={"LEASE": "3s"}).ready()
    (sleeper,) = first.workers
    ended(*[mark.enqueue(f"short-{n}") for n in range(200)])
    with transaction.atomic():
        results = [hog.enqueue("hog", 0.3), *[mark.enqueue(f"{n}") for n in range(20)]]
    until(lambda: ledger.count("began", "hog"), what="the hog")

    send(signal.SIGSTOP, sleeper)
    waited = [one for one in results[1:] if job(one).status == Job.RUNNING]
    second = start("--concurrency", "2", options={"LEASE": "3s"}).ready()
    until(lambda: ledger.count("ran") >= 220, what="the others' end")
    send(signal.SIGCONT, sleeper)
    rows = ended(*results)
    time.sleep(0.5)

    assert waited
    assert {ledger.lines("ran", f"{n}")[0].pid for n in range(20)} <= {sleeper, *second.workers}
    assert sorted(ledger.tags()) == sorted(set(ledger.tags()))
    assert {row.status for row in rows} == {Job.SUCCESSFUL}
