"""How jobs end by somebody's word: a body's, its caller's, or the clock's."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from django_once import Cancel, Retry, Snooze, task
from django_once.errors import Cancelled, NotFinished, Superseded, TimedOut
from django_once.models import Job
from django_once.models.job.watch import asked_to_end
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
from tests.jobs import a_worker, claim, claim_one, in_threads

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def row(result) -> Job:
    return Job.objects.get(pk=result.id)


def awaited(work):
    """Return what a coroutine returns; leave no connection of the thread in which it asked."""

    async def all_of_it():
        try:
            return await work
        finally:
            await sync_to_async(connections.close_all)()

    return asyncio.run(all_of_it())


SEEN: list = []


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


# Snooze.


@task(takes_context=True, retry=Retry(max_attempts=2, base="1s"))
def snooze_twice(context, seconds: float) -> int:
    SEEN.append((context.attempt, context.fence))
    if len(SEEN) <= 2:
        raise Snooze(seconds)
    return len(SEEN)


@task(takes_context=True)
async def snooze_once(context) -> None:
    SEEN.append(context.attempt)
    if len(SEEN) == 1:
        raise Snooze("1m")


def test_a_snoozed_job_comes_back_later_with_all_its_budgets():
    result = snooze_twice.enqueue(60)

    run_jobs()
    waiting = row(result)
    with moved_clock("1m") as clock:
        run_jobs()
        clock.advance("1m")
        run_jobs()
        result.refresh()

    assert (waiting.status, waiting.reason, waiting.attempt) == (Job.READY, "snoozed", 0)
    assert (waiting.failures, waiting.deaths, waiting.history) == (0, 0, "[]")
    assert 59 < (waiting.due_at - waiting.last_attempted_at).total_seconds() < 62
    assert [attempt for attempt, _ in SEEN] == [1, 1, 1]
    assert SEEN[0][1] < SEEN[1][1] < SEEN[2][1]
    assert (result.return_value, result.attempts, result.errors) == (3, 1, [])


def test_an_async_body_snoozes_as_well():
    result = snooze_once.enqueue()

    run_jobs()
    assert row(result).reason == "snoozed"
    with moved_clock("1m"):
        run_jobs()
    assert row(result).status == Job.SUCCESSFUL


@task(delivery="at_most_once")
def snooze_at_most_once() -> None:
    SEEN.append(1)
    raise Snooze("1m")


def test_what_may_start_once_only_cannot_snooze():
    result = snooze_at_most_once.enqueue()

    run_jobs()
    with moved_clock("1h"):
        run_jobs()

    assert (row(result).status, row(result).reason, SEEN) == (Job.FAILED, "raised", [1])
    assert "it cannot snooze" in row(result).history


# Cancel.


@task(retry=Retry(max_attempts=5))
def cancel_itself() -> None:
    raise Cancel("The order was withdrawn.")


def test_a_body_that_cancels_ends_its_job_for_good_with_the_reason():
    result = cancel_itself.enqueue()

    run_jobs()
    result.refresh()

    (error,) = result.errors
    assert (row(result).status, row(result).reason) == (Job.FAILED, "cancelled")
    assert error.exception_class is Cancelled
    assert "The order was withdrawn." in error.traceback
    assert row(result).cancel_requested_at is not None


def test_a_waiting_job_is_cancelled_at_once_and_only_once():
    result = tasks.add.enqueue(1)

    assert result.cancel() is True
    assert result.cancel() is False
    assert (row(result).status, row(result).reason) == (Job.FAILED, "cancelled")


def test_a_job_is_cancelled_from_async_code():
    result = tasks.add.enqueue(1)

    assert awaited(result.acancel()) is True
    assert row(result).reason == "cancelled"


def test_what_has_ended_is_not_cancelled():
    result = tasks.add.enqueue(1)
    run_jobs()

    assert result.cancel() is False
    assert row(result).status == Job.SUCCESSFUL


def test_a_running_job_is_asked_and_those_who_watch_it_see_so():
    result = tasks.add.enqueue(1)
    attempt = claim_one()
    body = (attempt.id, attempt.claim)

    assert asked_to_end("default", [body]) == {}
    assert result.cancel() is True
    (why,) = asked_to_end("default", [body]).values()

    assert isinstance(why, Cancelled)
    assert row(result).status == Job.RUNNING


@pytest.mark.books_may_be_wrong
def test_a_body_whose_job_was_taken_is_told():
    tasks.add.enqueue(1)
    attempt = claim_one()
    body = (attempt.id, attempt.claim)
    Job.objects.filter(pk=attempt.id).update(claim=None)

    (why,) = asked_to_end("default", [body]).values()

    assert isinstance(why, Superseded)
    Job.objects.all().delete()
    assert isinstance(asked_to_end("default", [body])[body], Superseded)


# Timeouts, as far as a body can see them.


@task(takes_context=True, timeout="10ms", retry=Retry(max_attempts=2, base="1h", jitter=0))
def go_on_until_told(context) -> str:
    SEEN.append(context.should_stop)
    while not context.should_stop:
        time.sleep(0.001)
    context.check()
    return "never"


@task(timeout="10ms")
async def hang_in_a_loop() -> None:
    await asyncio.Event().wait()


@task(timeout="10ms", delivery="exactly_once")
async def hang_in_a_transaction() -> None:
    await asyncio.Event().wait()


@task(timeout="10ms")
async def end_well_all_the_same() -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
    return "well"


def test_a_body_that_looks_ends_at_its_timeout_and_is_tried_again_by_policy():
    result = go_on_until_told.enqueue()

    run_jobs()
    waiting = row(result)
    with moved_clock("1h"):
        run_jobs()
    result.refresh()

    assert SEEN == [False, False]
    assert (waiting.status, waiting.reason, waiting.failures) == (Job.READY, "timed_out", 1)
    assert (row(result).status, row(result).reason) == (Job.FAILED, "timed_out")
    assert [error.exception_class for error in result.errors] == [TimedOut, TimedOut]


@pytest.mark.parametrize("declared", [hang_in_a_loop, hang_in_a_transaction])
def test_what_is_awaited_is_cancelled_at_its_timeout(declared):
    result = declared.enqueue()

    run_jobs()

    assert (row(result).status, row(result).reason) == (Job.FAILED, "timed_out")
    assert "ran past its timeout of 0.01 s" in row(result).history


def test_a_body_that_ends_well_although_its_time_is_over_has_succeeded():
    result = end_well_all_the_same.enqueue()

    run_jobs()
    result.refresh()

    assert result.return_value == "well"


@task(takes_context=True)
def look(context) -> bool:
    context.check()
    return context.should_stop


def test_a_body_that_nobody_stops_may_go_on():
    result = look.enqueue()

    run_jobs()
    result.refresh()

    assert result.return_value is False


@task
async def cancel_its_own_awaiting() -> None:
    raise asyncio.CancelledError


def test_a_cancelled_error_that_nobody_asked_for_is_a_failure_like_any():
    result = cancel_its_own_awaiting.enqueue()

    run_jobs()

    assert (row(result).status, row(result).reason) == (Job.FAILED, "raised")


# Waiting for an end.


def test_who_waits_gets_the_result_when_the_job_has_ended():
    result = tasks.add.enqueue(1, 2)

    (waited, _) = in_threads(lambda: result.wait("30s"), run_jobs)

    assert waited is result
    assert result.return_value == 3


def test_who_awaits_gets_the_result_when_the_job_has_ended():
    result = tasks.fail.enqueue()

    (waited, _) = in_threads(lambda: awaited(result.await_end(timedelta(seconds=30))), run_jobs)

    assert waited is result
    assert result.status == Job.FAILED


@pytest.mark.parametrize("timeout", [0, 0.05, "50ms"])
def test_who_waits_in_vain_is_told(timeout):
    result = tasks.add.enqueue(1)

    began = time.monotonic()
    with pytest.raises(NotFinished, match=f"Job {result.id} has not ended within"):
        result.wait(timeout)

    assert time.monotonic() - began < 5
    with pytest.raises(TimeoutError):
        awaited(result.await_end(timeout))


def test_waiting_inside_a_transaction_is_refused_unless_the_job_has_ended():
    result = tasks.add.enqueue(1)

    with transaction.atomic():
        with pytest.raises(TransactionManagementError, match="Wait after the atomic"):
            result.wait("1s")
    run_jobs()
    with transaction.atomic():
        assert result.wait("1s").return_value == 2


def test_who_waits_for_a_job_that_is_gone_is_told():
    result = tasks.add.enqueue(1)
    Job.objects.all().delete()

    with pytest.raises(Exception, match="has no job"):
        result.wait("1s")


# Attempts that must not be counted twice.


def test_a_cancel_and_a_claim_at_once_leave_one_end():
    result = tasks.add.enqueue(1)
    holder = a_worker()
    barrier = threading.Barrier(2)

    def cancelling():
        barrier.wait(10)
        return result.cancel()

    def claiming():
        barrier.wait(10)
        return len(claim(holder, 1))

    cancelled, claimed = in_threads(cancelling, claiming)

    assert cancelled is True
    found = row(result)
    assert found.cancel_requested_at is not None
    assert (found.status, claimed) in ((Job.FAILED, 0), (Job.RUNNING, 1))
