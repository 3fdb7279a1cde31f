"""Wherever two statements meet over one row, in both orders: one wins, and the other knows."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection

from django_once import sql
from django_once.models import Job, Worker
from django_once.models.job.again import retry
from django_once.models.job.cancel import cancel
from django_once.models.job.claim import SHARE_OF_WALKS, Walk
from django_once.models.job.expire import expire_dead, sweep
from django_once.models.job.prune import prune
from django_once.models.job.ready import promote
from django_once.models.job.settle import mark_started, settle, start, what_became
from django_once.models.worker import expire, renew
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
    row,
    store,
    store_many,
    success,
)
from tests.races.meeting import meet

pytestmark = [
    pytest.mark.engine,
    pytest.mark.races,
    pytest.mark.django_db(transaction=True),
]

MINUTE = timedelta(minutes=1)
has_row_locks = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has one writer: the second waits for the first."
)


def lapsed_worker():
    return a_worker("late", lease=timedelta(seconds=-1))


def of_a_lost_worker(**said):
    """Return an attempt whose worker was declared lost."""
    store(**said)
    attempt = claim_one(lapsed_worker())
    expire(DATABASE)
    return attempt


# Sentence 1: a job is held by at most one attempt.


def test_two_claims_never_take_the_same_job():
    jobs = store_many(10)
    one, two = a_worker("one"), a_worker("two")

    first, second = meet(lambda: claim(one, 6), lambda: claim(two, 6))

    taken = [attempt.id for attempt in first + second]
    assert sorted(taken) == sorted(jobs)


@has_row_locks
def test_a_claim_passes_over_what_another_has_locked():
    jobs = store_many(10)
    one, two = a_worker("one"), a_worker("two")

    first, second = meet(lambda: claim(one, 6), lambda: claim(two, 6), first_commits=False)

    assert [attempt.id for attempt in first] == jobs[:6]
    assert [attempt.id for attempt in second] == jobs[6:]
    assert [attempt.id for attempt in claim(one)] == jobs[:6]


@has_row_locks
@pytest.mark.parametrize("share", [SHARE_OF_WALKS, 1e-9], ids=["quick walks", "slow walks"])
def test_a_job_that_commits_late_at_a_lower_position_is_claimed_within_a_second(share, monkeypatch):
    # As if each walk from the start took so long that it should be rare.
    monkeypatch.setattr("django_once.models.job.claim.SHARE_OF_WALKS", share)
    walk = Walk(DATABASE, a_worker())
    ahead = store_many(3)

    def overtake():
        store_many(5)
        return [attempt.id for attempt in walk.claim(9)]

    late, claimed = meet(store, overtake)

    began = time.monotonic()
    while not (found := walk.claim(9)):
        assert time.monotonic() - began < 1, "The walk never came back for it."
    assert late not in claimed
    assert set(ahead) < set(claimed)
    assert [attempt.id for attempt in found] == [late]


def test_a_worker_that_claims_while_it_is_declared_lost_keeps_nothing():
    job = store()
    holder = lapsed_worker()

    attempts, _ = meet(lambda: claim(holder), lambda: expire(DATABASE))

    assert [attempt.id for attempt in attempts] == [job]
    assert Worker.objects.get(pk=holder.id).lost_at is not None
    assert [swept.id for swept in sweep(DATABASE)] == [job]


def test_a_worker_that_is_declared_lost_while_it_claims_keeps_nothing():
    job = store()
    holder = lapsed_worker()

    declared, attempts = meet(lambda: expire(DATABASE), lambda: claim(holder))

    assert declared == [holder.id]
    # Where readers do not wait, the claim saw a living worker: the next sweep sees a lost one.
    assert [swept.id for swept in sweep(DATABASE)] == [attempt.id for attempt in attempts]
    assert row(job).status == Job.READY
    assert claim(holder) == []


@has_row_locks
def test_a_foreign_key_to_a_job_does_not_hold_it_up():
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL locks a row because something refers to it.")
    job = store()

    def refer():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM once_job WHERE id = %s FOR KEY SHARE", [job])

    _, attempts = meet(refer, lambda: claim(a_worker()))

    assert [attempt.id for attempt in attempts] == [job]


def test_two_who_promote_place_each_job_once():
    for _ in range(6):
        store(run_after=MINUTE)

    with moved_clock("2m"):
        counts = meet(lambda: promote(DATABASE, 4), lambda: promote(DATABASE, 4))

    assert counts == (4, 2)


# Sentence 2: an attempt ends once.

OUTCOMES = {"success": success, "failure": failure, "retry": another_try, "release": given_back}


@pytest.mark.parametrize("second", OUTCOMES)
@pytest.mark.parametrize("first", OUTCOMES)
def test_of_two_settles_the_first_to_commit_decides(first, second):
    job = store(max_attempts=9)
    attempt = claim_one()

    answers = meet(
        lambda: settle(DATABASE, [OUTCOMES[first](attempt)]),
        lambda: settle(DATABASE, [OUTCOMES[second](attempt)]),
    )

    assert answers == (set(), {job})
    expected = {"success": "SUCCESSFUL", "failure": "FAILED"}.get(first, "READY")
    assert row(job).status == expected


def test_a_settle_that_rolls_back_leaves_the_attempt_to_the_other():
    job = store()
    attempt = claim_one()

    answers = meet(
        lambda: settle(DATABASE, [success(attempt)]),
        lambda: settle(DATABASE, [failure(attempt)]),
        first_commits=False,
    )

    assert answers == (set(), set())
    assert row(job).status == Job.FAILED


def test_batches_that_share_attempts_never_wait_for_each_other_crosswise():
    store_many(40)
    attempts = claim(a_worker())
    mixed = [success(one) for one in attempts[::-1]]

    first, second = meet(
        lambda: settle(DATABASE, mixed[::2]), lambda: settle(DATABASE, mixed[::-1])
    )

    assert first == set()
    assert second == {one.id for one in mixed[::2]}


def test_what_a_sweep_took_is_superseded():
    attempt = of_a_lost_worker()

    swept, superseded = meet(lambda: sweep(DATABASE), lambda: settle(DATABASE, [success(attempt)]))

    assert [one.id for one in swept] == [attempt.id]
    assert superseded == {attempt.id}
    assert row(attempt.id).status == Job.READY


def test_what_is_being_settled_is_not_swept():
    attempt = of_a_lost_worker()

    superseded, swept = meet(lambda: settle(DATABASE, [success(attempt)]), lambda: sweep(DATABASE))

    assert (superseded, swept) == (set(), [])
    assert row(attempt.id).status == Job.SUCCESSFUL


def test_a_sweep_that_dies_is_repeated_by_the_next():
    attempt = of_a_lost_worker()

    def by_another():
        return sweep(DATABASE)

    first, second = meet(lambda: sweep(DATABASE), by_another, first_commits=False)

    assert [one.id for one in first] == [attempt.id]
    assert [one.id for one in second or sweep(DATABASE)] == [attempt.id]


def test_two_sweeps_take_each_job_once():
    store_many(8)
    claim(lapsed_worker())
    expire(DATABASE)

    first, second = meet(lambda: sweep(DATABASE, 5), lambda: sweep(DATABASE, 5))

    assert (len(first), len(second)) == (5, 3)
    assert len({one.id for one in first + second}) == 8


def test_a_death_and_a_sweep_end_a_job_once():
    attempt = of_a_lost_worker(max_deaths=0)
    mark_started(DATABASE, [(attempt.id, attempt.claim, 1.0)])
    worker = row(attempt.id).worker
    named = [(attempt.id, attempt.claim)]

    died, swept = meet(
        lambda: expire_dead(DATABASE, worker, named, "killed by signal 9"), lambda: sweep(DATABASE)
    )

    assert ([one.reason for one in died], swept) == (["died"], [])
    assert (row(attempt.id).deaths, row(attempt.id).attempt) == (1, 1)


# A start on record.


def test_what_a_sweep_took_is_not_started():
    attempt = of_a_lost_worker(delivery="at_most_once")

    _, started = meet(lambda: sweep(DATABASE), lambda: start(DATABASE, attempt))

    assert started is False
    assert row(attempt.id).status == Job.READY


def test_what_is_being_started_is_lost_and_never_ready():
    attempt = of_a_lost_worker(delivery="at_most_once")

    started, swept = meet(lambda: start(DATABASE, attempt), lambda: sweep(DATABASE))

    assert started is True
    assert [one.reason for one in swept or sweep(DATABASE)] == ["lost"]
    assert row(attempt.id).status == Job.FAILED


def test_a_start_is_recorded_once():
    store(delivery="at_most_once")
    attempt = claim_one()

    assert meet(lambda: start(DATABASE, attempt), lambda: start(DATABASE, attempt)) == (True, False)


# exactly_once: the body's transaction holds the row.


def begun(attempt):
    return sql.on(DATABASE).begin_success(attempt.id, attempt.claim, 60.0)


def begun_and_verified(attempt):
    statements = sql.on(DATABASE)
    mark = begun(attempt)
    return bool(mark) and statements.verify_success(attempt.id, attempt.claim, mark, "7", 0.0)


def test_a_body_that_commits_after_its_lease_lapsed_has_succeeded():
    attempt = of_a_lost_worker()

    verified, swept = meet(lambda: begun_and_verified(attempt), lambda: sweep(DATABASE))

    assert (verified, swept) == (True, [])
    assert sweep(DATABASE) == []
    assert (row(attempt.id).status, row(attempt.id).return_value) == ("SUCCESSFUL", "7")


def test_a_body_that_rolled_back_is_swept():
    attempt = of_a_lost_worker()

    meet(lambda: begun_and_verified(attempt), lambda: sweep(DATABASE), first_commits=False)

    sweep(DATABASE)
    assert row(attempt.id).status == Job.READY


def test_a_superseded_body_stops_before_it_has_done_anything():
    attempt = of_a_lost_worker()

    _, has_begun = meet(lambda: sweep(DATABASE), lambda: begun(attempt))

    assert has_begun is None


@has_row_locks
def test_a_dead_childs_open_transaction_is_left_to_the_next_sweep():
    store()
    holder = a_worker()
    attempt = claim_one(holder)

    _, died = meet(
        lambda: begun(attempt),
        lambda: expire_dead(DATABASE, holder.id, [(attempt.id, attempt.claim)], "x"),
        first_commits=False,
    )

    assert died == []
    assert row(attempt.id).status == Job.RUNNING


# An answer that was lost: the row is read with a lock.


@pytest.mark.parametrize("how", [lambda one: settle(DATABASE, [success(one)]), begun_and_verified])
@pytest.mark.parametrize(("commits", "fate"), [(True, "settled"), (False, "held")])
def test_what_became_of_an_attempt_waits_for_a_commit_in_flight(how, commits, fate):
    store()
    attempt = claim_one()

    _, fates = meet(
        lambda: how(attempt),
        lambda: what_became(DATABASE, [(attempt.id, attempt.claim)]),
        first_commits=commits,
    )

    if connection.vendor == "sqlite" and not commits:
        # SQLite's writer has died with its connection before anybody can ask.
        fates = what_became(DATABASE, [(attempt.id, attempt.claim)])
    assert fates == {attempt.id: fate}


# Sentence 3: the worker's lease covers all it holds.


def test_a_worker_that_renews_first_is_not_lost():
    holder = lapsed_worker()

    renewed, declared = meet(lambda: renew(DATABASE, [holder.id], MINUTE), lambda: expire(DATABASE))

    assert (renewed, declared) == (1, [])
    assert Worker.objects.get().lost_at is None


def test_a_worker_that_was_declared_lost_first_can_never_renew():
    holder = lapsed_worker()

    declared, renewed = meet(lambda: expire(DATABASE), lambda: renew(DATABASE, [holder.id], MINUTE))

    assert (declared, renewed) == ([holder.id], 0)
    assert renew(DATABASE, [holder.id], MINUTE) == 0


def test_a_worker_is_declared_lost_once():
    holder = lapsed_worker()

    first, second = meet(lambda: expire(DATABASE), lambda: expire(DATABASE))

    assert (first, second) == ([holder.id], [])


def test_a_renewal_that_rolls_back_saves_nobody():
    holder = lapsed_worker()

    _, declared = meet(
        lambda: renew(DATABASE, [holder.id], MINUTE), lambda: expire(DATABASE), first_commits=False
    )

    assert declared == [holder.id]


# What people ask for.


def test_a_job_that_is_being_cancelled_is_not_claimed():
    job = store()

    cancelled, attempts = meet(lambda: cancel(DATABASE, [job]), lambda: claim(a_worker()))

    assert (cancelled, attempts) == (Cancellation(ended=1), [])


def test_a_job_that_is_being_claimed_is_asked_to_end_or_reported_busy():
    job = store()
    holder = a_worker()

    attempts, cancelled = meet(lambda: claim(holder), lambda: cancel(DATABASE, [job]))

    assert len(attempts) == 1
    assert cancelled in (Cancellation(requested=1), Cancellation(busy=1))
    assert row(job).status == Job.RUNNING


def test_of_a_cancel_and_a_completion_the_first_to_commit_decides():
    job = store(max_attempts=9)
    attempt = claim_one()

    cancelled, superseded = meet(
        lambda: cancel(DATABASE, [job]), lambda: settle(DATABASE, [another_try(attempt)])
    )

    assert (cancelled, superseded) == (Cancellation(requested=1), set())
    assert (row(job).status, row(job).reason) == ("FAILED", "cancelled")


def test_two_retries_put_a_job_back_once():
    job = store()
    settle(DATABASE, [failure(claim_one())])

    assert meet(lambda: retry(DATABASE, [job]), lambda: retry(DATABASE, [job])) == (1, 0)


def test_a_job_that_is_being_retried_is_not_pruned():
    job = store()
    settle(DATABASE, [failure(claim_one())])
    kept = {"FAILED": timedelta(0)}

    with moved_clock("1m"):
        retried, pruned = meet(lambda: retry(DATABASE, [job]), lambda: prune(DATABASE, None, kept))

    assert (retried, pruned) == (1, 0)
    assert row(job).status == Job.READY


def test_a_job_that_is_being_pruned_is_not_retried():
    job = store()
    settle(DATABASE, [failure(claim_one())])
    kept = {"FAILED": timedelta(0)}

    with moved_clock("1m"):
        pruned, retried = meet(lambda: prune(DATABASE, None, kept), lambda: retry(DATABASE, [job]))

    assert (pruned, retried) == (1, 0)
    assert not Job.objects.exists()
