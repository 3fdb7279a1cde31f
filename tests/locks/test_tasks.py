"""Tasks under a lock: `@task(lock="digest:{user_id}", if_held="skip")`."""

from __future__ import annotations

import pytest
from django.db import connection

from django_once import task
from django_once.errors import InvalidOption
from django_once.locks import acquire_task_lock, lock, release_task_lock
from django_once.models import Job, Lock
from django_once.models.job.explain import explain
from django_once.models.job.locked import await_locks, let_go_overlooked
from django_once.models.lock import end_by_force
from django_once.testing import moved_clock, run_jobs
from tests.app import locked
from tests.app.models import Note, Report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


def job(result):
    return Job.objects.get(pk=result.id)


def test_a_body_runs_under_its_lock_and_sees_the_fence():
    first, second = locked.digest.enqueue(7), locked.digest.enqueue(user_id=7)

    assert run_jobs() == 2

    first.refresh()
    second.refresh()
    assert (first.return_value, second.return_value) == (1, 2)
    assert Lock.objects.get(pk="digest:7").released_at is not None


def test_a_job_that_meets_a_held_lock_is_skipped():
    result = locked.digest.enqueue(7)
    with lock("digest:7"):
        run_jobs()

    assert (job(result).status, job(result).reason) == (Job.FAILED, "skipped")
    assert "digest:7" in job(result).history
    assert not Note.objects.exists()


def test_another_users_lock_is_another_lock():
    result = locked.digest.enqueue(8)
    with lock("digest:7"):
        run_jobs()

    assert job(result).status == Job.SUCCESSFUL


def test_a_job_that_shall_fail_fails_by_its_policy():
    result = locked.digest_or_fail.enqueue(7)
    with lock("digest:7"):
        run_jobs()

    assert (job(result).status, job(result).reason) == (Job.FAILED, "raised")
    assert "LockHeld" in job(result).history


def test_a_job_that_shall_wait_goes_back_uncharged_and_is_let_go_by_the_release():
    result = locked.digest_in_time.enqueue(7)
    with lock("digest:7") as held:
        run_jobs()
        assert (job(result).status, job(result).attempt) == (Job.READY, 0)
        assert (job(result).blocked_by, job(result).position) == ("lock:digest:7", None)
        says = explain("default", job(result).pk).says
        assert "lock 'digest:7' is held by" in says
        assert held.holder in says

    assert job(result).position is not None
    assert run_jobs() == 1
    assert job(result).status == Job.SUCCESSFUL
    assert Note.objects.count() == 1


def test_each_release_lets_one_job_go_and_that_one_the_next():
    results = [locked.digest_in_time.enqueue(7) for _ in range(3)]
    with lock("digest:7"):
        run_jobs()

    assert [job(one).position is not None for one in results] == [True, False, False]
    assert run_jobs() == 3
    assert {job(one).status for one in results} == {Job.SUCCESSFUL}
    assert not Lock.objects.get(pk="digest:7").has_jobs


def test_a_job_whose_holder_died_is_let_go_when_the_lease_is_over():
    result = locked.digest_in_time.enqueue(7)
    # Nobody renews it any more.
    lock("digest:7", lease=2).acquire().lost.set()
    run_jobs()

    assert let_go_overlooked("default") == (0, "")
    with moved_clock("10s"):
        assert "is free again" in explain("default", job(result).pk).says
        assert let_go_overlooked("default") == (1, "")
        run_jobs()

    assert job(result).status == Job.SUCCESSFUL


def test_a_lock_that_was_released_before_the_job_was_stored_lets_it_go_at_once():
    result = locked.digest_in_time.enqueue(7)
    held = lock("digest:7").acquire()
    original = Job.objects.filter(pk=result.id)
    run_jobs()
    # As if the mark had not been set before the release.
    Lock.objects.update(has_jobs=False)
    held.release()
    assert original.get().position is None

    assert await_locks("default", [original.get().blocked_by, "limit", ""]) == 1
    assert original.get().position is not None


@pytest.mark.parametrize("end", [
    lambda: end_by_force(connection, "task_lock:digest", "ann", "stuck"),
    lambda: release_task_lock("pod1", "digest"),
])  # fmt: skip
def test_whoever_ends_a_holding_lets_a_job_go(end):
    acquire_task_lock("pod1", "digest")
    result = locked.waits_for_a_pod.enqueue()
    run_jobs()

    end()

    assert job(result).position is not None


def test_jobs_that_wait_for_two_locks_wait_for_each_alone():
    seven, eight = locked.digest_in_time.enqueue(7), locked.digest_in_time.enqueue(8)
    with lock("digest:8"):
        with lock("digest:7"):
            run_jobs()
        assert (job(seven).position is None, job(eight).position is None) == (False, True)


def test_an_exactly_once_body_holds_its_lock_around_its_transaction():
    result = locked.digest_once.enqueue(7)

    run_jobs()

    result.refresh()
    assert result.return_value == 1
    assert Note.objects.count() == 1


def test_a_body_that_outlived_its_lock_keeps_nothing():
    result = locked.outlives_its_lock_once.enqueue()
    run_jobs()

    assert job(result).status == Job.SUCCESSFUL
    assert Lock.objects.get(pk="stolen").fence == 2
    assert not Note.objects.exists()


def test_an_async_body_runs_under_its_lock_and_guards_what_it_writes():
    Report.objects.create(body="old")
    result = locked.report.enqueue("new")

    run_jobs()

    result.refresh()
    assert result.return_value == 1
    assert [(one.body, one.fence) for one in Report.objects.all()] == [("new", 1)]


def test_a_context_without_a_lock_says_how_to_get_one():
    result = locked.without.enqueue()

    run_jobs()

    result.refresh()
    assert "@task(lock=" in result.return_value


def test_a_lock_that_a_person_ended_is_left_alone_by_the_attempt():
    result = locked.loses_its_lock.enqueue()
    run_jobs()

    assert job(result).status == Job.SUCCESSFUL


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"lock": ""}, "1 to 255"),
        ({"lock": 7}, "1 to 255"),
        ({"if_held": "skip"}, "say which"),
        ({"lock": "a", "if_held": "steal"}, "skip, wait, fail"),
        ({"lock": "a:{nobody}"}, "does not take"),
        ({"lock": "a", "if_held": "wait", "delivery": "at_most_once"}, "cannot go back"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_import(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):

        @task(**said)
        def digest(user_id):
            pass
