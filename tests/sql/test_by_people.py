"""What people ask for: cancel, retry, prune."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from django_once.models import Job
from django_once.models.job.again import retry
from django_once.models.job.cancel import cancel
from django_once.models.job.prune import prune
from django_once.models.job.settle import settle, start, what_became
from django_once.sql.values import Cancellation
from django_once.testing import moved_clock
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    claim_one,
    failure,
    given_back,
    history,
    in_threads,
    row,
    store,
    store_many,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_what_waits_is_cancelled_at_once():
    now, later = store(), store(run_after=timedelta(hours=1))
    blocked = store(priority=9)
    settle(DATABASE, [given_back(claim_one(), blocked_by="unknown_task")])

    assert cancel(DATABASE, [now, later, blocked]) == Cancellation(ended=3)
    for job in (now, later, blocked):
        assert (row(job).status, row(job).reason) == ("FAILED", "cancelled")
        (entry,) = history(job)
        assert (entry["kind"], entry["error"]) == ("cancelled", "django_once.errors.Cancelled")
    assert claim(a_worker()) == []


def test_what_runs_is_asked_to_end_and_the_first_asking_is_kept():
    job = store()
    claim_one()

    assert cancel(DATABASE, [job]) == Cancellation(requested=1)
    asked = row(job).cancel_requested_at
    assert cancel(DATABASE, [job, job]) == Cancellation(requested=1)
    assert (row(job).status, row(job).cancel_requested_at) == ("RUNNING", asked)


@pytest.mark.parametrize("outcome", [success, failure])
def test_what_has_ended_is_not_cancelled(outcome):
    job = store()
    settle(DATABASE, [outcome(claim_one())])
    before = Job.objects.values().get()

    assert cancel(DATABASE, [job, UUID(int=7)]) == Cancellation()
    assert Job.objects.values().get(pk=job) == before


def test_thousands_are_cancelled_in_batches():
    jobs = store_many(1_100)

    assert cancel(DATABASE, jobs) == Cancellation(ended=1_100)


def test_a_cancelled_job_frees_its_uniqueness():
    job = store()
    Job.objects.filter(pk=job).update(unique_hash="once")

    cancel(DATABASE, [job])

    assert row(job).unique_hash is None


@pytest.mark.parametrize("verb", [cancel, retry])
def test_nobody_waits_for_a_body_that_holds_its_row(verb):
    if connection.vendor == "sqlite":
        pytest.skip("On SQLite the body holds the only write lock.")
    job = store()
    attempt = claim_one()
    holds, may_end = threading.Event(), threading.Event()

    def body():
        with transaction.atomic():
            Job.objects.filter(pk=job).update(status="SUCCESSFUL")
            holds.set()
            assert may_end.wait(30)
            transaction.set_rollback(True)

    def person():
        assert holds.wait(30)
        try:
            return verb(DATABASE, [job])
        finally:
            may_end.set()

    _, answer = in_threads(body, person)

    assert answer == (Cancellation(busy=1) if verb is cancel else 0)
    assert settle(DATABASE, [success(attempt)]) == set()


def test_a_retry_gives_fresh_budgets_and_keeps_fence_and_nonce():
    job = store(max_attempts=2)
    attempts = []
    for outcome in (another_try, failure):
        attempts.append(claim_one())
        settle(DATABASE, [outcome(attempts[-1])])

    assert retry(DATABASE, [job]) == 1

    found = row(job)
    assert (found.status, found.attempt, found.failures, found.deaths) == ("READY", 0, 0, 0)
    assert (found.fence, found.claim) == (2, attempts[-1].claim)
    assert (found.finished_at, found.reason, len(history(job))) == (None, "", 2)
    again = claim_one()
    assert (again.fence, again.attempt) == (3, 1)


def test_the_attempt_that_ended_before_a_retry_stays_superseded():
    job = store()
    first = claim_one()
    settle(DATABASE, [failure(first)])
    retry(DATABASE, [job])

    assert settle(DATABASE, [success(first)]) == {job}
    assert what_became(DATABASE, [(job, first.claim)]) == {job: "settled"}
    again = claim_one()
    assert settle(DATABASE, [success(first)]) == {job}
    assert settle(DATABASE, [success(again)]) == set()


def test_retried_jobs_stand_in_the_order_that_was_asked_for():
    jobs = store_many(4)
    settle(DATABASE, [success(one) for one in claim(a_worker())])

    assert retry(DATABASE, [jobs[i] for i in (2, 0, 3, 1)]) == 4

    assert [one.id for one in claim(a_worker())] == [jobs[i] for i in (2, 0, 3, 1)]


def test_what_has_not_ended_is_not_retried():
    waits = store(run_after=timedelta(hours=1))
    runs = store()
    claim_one()

    assert retry(DATABASE, [waits, runs]) == 0
    assert [row(waits).status, row(runs).status] == ["READY", "RUNNING"]


def test_a_retry_forgets_expiry_and_cancel():
    job = store(expires=timedelta(seconds=1))
    cancel(DATABASE, [job])

    with moved_clock("1h"):
        retry(DATABASE, [job])
        again = claim_one()

    assert (again.is_expired, again.cancel_requested) == (False, False)


def test_a_person_may_start_a_lost_job_once_more():
    job = store(delivery="at_most_once")
    attempt = claim_one()
    start(DATABASE, attempt)
    settle(DATABASE, [failure(attempt, reason="lost")])

    retry(DATABASE, [job])

    assert start(DATABASE, claim_one())


def end_some():
    jobs = store_many(4)
    one, two, three, four = claim(a_worker())
    settle(DATABASE, [success(one), success(two), failure(three), another_try(four, delay=1.0)])
    running = store(priority=9)
    claim(a_worker(), 1)
    return [*jobs, running]


def test_ended_jobs_are_pruned_when_they_are_old_and_others_never():
    *_, waits, runs = end_some()
    kept = {"SUCCESSFUL": timedelta(days=1), "FAILED": timedelta(days=30)}

    counts = []
    for days in (0.9, 1.1, 29, 31, 3000):
        with moved_clock(timedelta(days=days)):
            counts.append(prune(DATABASE, None, kept))

    assert counts == [0, 2, 0, 1, 0]
    assert set(Job.objects.values_list("pk", flat=True)) == {waits, runs}


def test_a_status_that_is_not_named_is_kept_for_ever():
    end_some()

    with moved_clock("3000d"):
        assert prune(DATABASE, None, {"FAILED": timedelta(0)}) == 1
        assert prune(DATABASE, None, {}) == 0
    assert Job.objects.filter(status="SUCCESSFUL").count() == 2


@pytest.mark.parametrize("status", ["RUNNING", "READY", "successful"])
def test_what_has_not_ended_cannot_even_be_asked_for(status):
    with pytest.raises(ValueError, match="Only ended jobs can be pruned"):
        prune(DATABASE, None, {status: timedelta(0)})


def test_pruning_goes_in_batches_the_oldest_first():
    jobs = store_many(5)
    for attempt in claim(a_worker()):
        settle(DATABASE, [success(attempt)])

    with moved_clock("1m"):
        counts = [prune(DATABASE, None, {"SUCCESSFUL": timedelta(0)}, batch=2) for _ in range(2)]
        assert list(Job.objects.values_list("pk", flat=True)) == jobs[-1:]
        counts += [prune(DATABASE, None, {"SUCCESSFUL": timedelta(0)}, batch=2) for _ in range(2)]

    assert counts == [2, 2, 1, 0]


def test_pruning_may_be_of_one_backend():
    ours, theirs = store(), store(backend="other")
    settle(DATABASE, [success(one) for one in claim(a_worker())])
    settle(DATABASE, [success(one) for one in claim(a_worker(backend="other"))])

    with moved_clock("1m"):
        assert prune(DATABASE, "other", {"SUCCESSFUL": timedelta(0)}) == 1

    assert not Job.objects.filter(pk=theirs).exists()
    assert row(ours).status == Job.SUCCESSFUL


def test_two_who_prune_at_once_delete_each_job_once():
    store_many(300)
    settle(DATABASE, [success(one) for one in claim(a_worker(), 300)])

    def until_empty():
        with_age = {"SUCCESSFUL": timedelta(0)}
        counts = []
        while Job.objects.exists():
            counts.append(prune(DATABASE, None, with_age, batch=50))
        return sum(counts)

    with moved_clock("1m"):
        assert sum(in_threads(until_empty, until_empty)) == 300
