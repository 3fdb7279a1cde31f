"""What becomes of jobs whose worker is gone: every delivery, budget and kind of evidence."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from django_once.models import Job, Worker
from django_once.models.job.cancel import cancel
from django_once.models.job.expire import expire_dead, reconcile, sweep
from django_once.models.job.settle import mark_started, settle, start
from django_once.models.worker import expire, stop
from django_once.sql.values import Swept
from django_once.testing import moved_clock
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    claim_one,
    given_back,
    history,
    row,
    store,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

DELIVERIES = ("at_least_once", "exactly_once", "at_most_once")


def lost_worker():
    return a_worker("gone", lease=timedelta(seconds=-1))


def lose_all():
    return expire(DATABASE)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_claim_that_was_not_started_comes_back_free(delivery):
    job = store(delivery=delivery)
    holder = lost_worker()
    attempt = claim_one(holder)
    lose_all()

    swept = sweep(DATABASE)

    found = row(job)
    assert swept == [Swept(job, "tests.add", "READY", "lost", holder.id)]
    assert (found.status, found.attempt, found.deaths, found.history) == ("READY", 0, 0, "[]")
    assert found.position is not None
    assert found.fence == attempt.fence == 1
    assert found.claim is None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_may_have_run_unseen_comes_back_as_a_suspect(delivery):
    job = store(delivery=delivery)
    claim_one(lost_worker())
    lose_all()

    sweep(DATABASE)

    # The start of an at_most_once job is on record before its call, so it cannot have run.
    assert row(job).suspect == (delivery != "at_most_once")
    assert claim_one().is_suspect == (delivery != "at_most_once")


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_what_was_started_comes_back_with_an_entry_and_uncharged(delivery):
    job = store(delivery=delivery)
    attempt = claim_one(lost_worker())
    mark_started(DATABASE, [(job, attempt.claim, 1.5)])
    lose_all()

    sweep(DATABASE)

    found = row(job)
    (entry,) = history(job)
    assert (found.status, found.attempt, found.deaths) == ("READY", 1, 0)
    assert (entry["kind"], entry["attempt"], entry["worker"]) == ("lost", 1, "gone")
    assert entry["error"] == "django_once.errors.Lost"


def test_a_started_at_most_once_job_is_lost_and_never_ready_again():
    job = store(delivery="at_most_once")
    attempt = claim_one(lost_worker())
    assert start(DATABASE, attempt)
    lose_all()

    (swept,) = sweep(DATABASE)

    found = row(job)
    assert (swept.status, swept.reason) == ("FAILED", "lost")
    assert (found.status, found.reason, found.position) == ("FAILED", "lost", None)
    assert history(job)[0]["kind"] == "lost"


def test_a_suspect_that_was_started_is_charged_until_its_budget_is_used_up():
    job = store(max_deaths=1)
    claim_one(lost_worker())
    lose_all()
    sweep(DATABASE)

    ends = []
    for _ in range(2):
        suspect = claim_one(lost_worker())
        assert start(DATABASE, suspect)
        lose_all()
        ends += [(swept.status, swept.reason) for swept in sweep(DATABASE)]

    assert ends == [("READY", "lost"), ("FAILED", "died")]
    assert row(job).deaths == 2
    assert [entry["kind"] for entry in history(job)] == ["died", "died"]


def test_a_suspect_that_was_not_started_is_not_charged():
    job = store(max_deaths=0)
    for _ in range(3):
        claim_one(lost_worker())
        lose_all()
        sweep(DATABASE)

    found = row(job)
    assert (found.status, found.deaths, found.attempt, found.suspect) == ("READY", 0, 0, True)


def test_a_suspect_that_ends_by_itself_is_none_any_more():
    job = store(max_attempts=2)
    claim_one(lost_worker())
    lose_all()
    sweep(DATABASE)
    suspect = claim_one()

    settle(DATABASE, [another_try(suspect)])

    assert suspect.is_suspect
    assert not row(job).suspect


def test_a_suspect_that_is_given_back_unstarted_stays_one():
    job = store()
    claim_one(lost_worker())
    lose_all()
    sweep(DATABASE)

    settle(DATABASE, [given_back(claim_one())])

    assert row(job).suspect


@pytest.mark.parametrize("started", [True, False])
def test_a_job_that_was_to_be_cancelled_does_not_come_back(started):
    job = store()
    attempt = claim_one(lost_worker())
    if started:
        mark_started(DATABASE, [(job, attempt.claim, 0.5)])
    cancel(DATABASE, [job])
    lose_all()

    (swept,) = sweep(DATABASE)

    assert (swept.status, swept.reason) == ("FAILED", "cancelled")
    assert row(job).attempt == (1 if started else 0)


@pytest.mark.parametrize("gone", ["lost", "stopped", "deleted"])
def test_a_sweep_finds_whatever_has_no_living_worker(gone):
    job = store()
    holder = lost_worker() if gone == "lost" else a_worker()
    claim_one(holder)
    if gone == "lost":
        lose_all()
    elif gone == "stopped":
        stop(DATABASE, holder.id)
    else:
        Worker.objects.filter(pk=holder.id).delete()

    swept = sweep(DATABASE)

    assert [one.id for one in swept] == [job]


def test_a_sweep_leaves_the_jobs_of_the_living():
    store()
    attempt = claim_one(a_worker())

    assert sweep(DATABASE) == []
    assert settle(DATABASE, [success(attempt)]) == set()


def test_a_swept_attempt_is_superseded():
    job = store()
    attempt = claim_one(lost_worker())
    lose_all()
    sweep(DATABASE)

    assert settle(DATABASE, [success(attempt)]) == {job}
    assert row(job).status == Job.READY


def test_a_sweep_takes_no_more_than_it_was_told():
    for _ in range(5):
        store()
    claim(lost_worker(), 5)
    lose_all()

    counts = [len(sweep(DATABASE, most=2)) for _ in range(4)]

    assert counts == [2, 2, 1, 0]


# A supervisor that reaped a child knows more.


def test_a_death_is_charged_to_the_started_job_and_to_no_other():
    started, waiting = store(priority=1), store()
    holder = a_worker("bob")
    first, _ = claim(holder)

    swept = expire_dead(DATABASE, holder.id, [(started, first.claim)], "killed by signal 9")

    died, free = row(started), row(waiting)
    (entry,) = history(started)
    assert {one.id: one.status for one in swept} == {started: "READY", waiting: "READY"}
    assert (died.deaths, died.attempt, died.suspect) == (1, 1, True)
    assert died.started_at is not None
    assert (entry["kind"], entry["worker"]) == ("died", "bob")
    assert "killed by signal 9" in entry["traceback"]
    assert (free.deaths, free.attempt, free.suspect, free.history) == (0, 0, False, "[]")


def test_a_job_that_kills_its_worker_too_often_ends_as_died():
    job = store(max_deaths=2)
    ends = []
    for _ in range(3):
        holder = a_worker()
        attempt = claim_one(holder)
        start(DATABASE, attempt)
        ends += expire_dead(DATABASE, holder.id, [(job, attempt.claim)], "exit status 1")

    assert [(end.status, end.reason) for end in ends] == [
        ("READY", "lost"), ("READY", "lost"), ("FAILED", "died"),
    ]  # fmt: skip
    assert row(job).deaths == 3


def test_a_started_at_most_once_job_of_a_dead_child_is_lost():
    job = store(delivery="at_most_once")
    holder = a_worker()
    attempt = claim_one(holder)
    start(DATABASE, attempt)

    (swept,) = expire_dead(DATABASE, holder.id, [(job, attempt.claim)], "exit status 1")

    assert (swept.status, swept.reason) == ("FAILED", "lost")


def test_an_at_most_once_job_whose_start_is_not_on_record_was_not_called():
    job = store(delivery="at_most_once")
    holder = a_worker()
    attempt = claim_one(holder)

    (swept,) = expire_dead(DATABASE, holder.id, [(job, attempt.claim)], "exit status 1")

    assert swept.status == "READY"
    assert (row(job).attempt, row(job).history) == (0, "[]")


def test_a_sibling_of_a_body_that_was_killed_comes_back_uncharged():
    culprit, sibling = store(priority=1), store()
    holder = a_worker()
    first, second = claim(holder)
    mark_started(DATABASE, [(one.id, one.claim, 2.0) for one in (first, second)])

    expire_dead(DATABASE, holder.id, [(culprit, first.claim)], "timed out after 2 s")

    assert (row(culprit).deaths, row(sibling).deaths) == (1, 0)
    assert row(sibling).attempt == 1
    assert history(sibling)[0]["kind"] == "lost"


def test_only_the_claim_that_was_started_is_charged():
    job = store()
    holder = a_worker()
    earlier = claim_one(holder)
    settle(DATABASE, [given_back(earlier)])
    claim_one(holder)

    expire_dead(DATABASE, holder.id, [(job, earlier.claim)], "exit status 1")

    assert (row(job).deaths, row(job).attempt) == (0, 0)


def test_the_jobs_of_other_workers_are_left_alone():
    store()
    attempt = claim_one(a_worker("ann"))

    assert expire_dead(DATABASE, a_worker("bob").id, [(attempt.id, attempt.claim)], "x") == []
    assert settle(DATABASE, [success(attempt)]) == set()


# A claim whose answer was lost.


def test_a_claim_that_nobody_remembers_comes_back_without_an_attempt_burnt():
    known, unknown = store(priority=1), store()
    holder = a_worker()
    kept = claim_one(holder)
    claim_one(holder)

    given = reconcile(DATABASE, holder.id, [kept.claim, uuid4()])

    assert [one.id for one in given] == [unknown]
    assert (row(unknown).status, row(unknown).attempt, row(unknown).suspect) == ("READY", 0, False)
    assert row(known).status == Job.RUNNING


def test_a_started_at_most_once_job_that_nobody_remembers_is_lost():
    job = store(delivery="at_most_once")
    holder = a_worker()
    start(DATABASE, claim_one(holder))

    (given,) = reconcile(DATABASE, holder.id, [])

    assert (given.status, given.reason, row(job).status) == ("FAILED", "lost", "FAILED")


def test_a_worker_that_holds_nothing_gives_all_back():
    jobs = {store() for _ in range(3)}
    holder = a_worker()
    claim(holder)

    assert {one.id for one in reconcile(DATABASE, holder.id, [])} == jobs
    assert reconcile(DATABASE, holder.id, []) == []


def test_an_entry_is_dated_by_the_databases_moved_clock():
    job = store()
    attempt = claim_one(a_worker("gone"))
    mark_started(DATABASE, [(job, attempt.claim, 0.5)])

    with moved_clock("3h"):
        lose_all()
        sweep(DATABASE)

    found = row(job)
    assert history(job)[0]["at"][:13] == (found.enqueued_at + timedelta(hours=3)).isoformat()[:13]
