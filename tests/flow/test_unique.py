"""Uniqueness: of one name there is at most one job, whoever enqueues, and no transaction breaks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_once import errors
from django_once.compat import TaskResultStatus
from django_once.models import Job
from django_once.models.job.again import retry
from django_once.models.job.cancel import cancel
from django_once.models.job.settle import settle
from django_once.testing import moved_clock, run_jobs
from tests.flow.tasks import alert, charge, mail, once_in_ten_minutes, pay, reindex, report
from tests.jobs import DATABASE, a_worker, another_try, claim, given_back, in_threads, row, success

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_the_second_of_a_name_is_the_first():
    first, second, other = charge.enqueue(7), charge.enqueue(7, amount=3), charge.enqueue(8)

    assert (second.id, second.is_new, second.disposition) == (first.id, False, "waiting")
    assert first.is_new
    assert other.id != first.id
    assert Job.objects.count() == 2


def test_thirty_two_at_once_make_one_job_and_get_one_id():
    crowd = 8 if connection.vendor == "sqlite" else 32

    ids = in_threads(*[lambda: charge.enqueue(7).id] * crowd, timeout=120)

    assert len(ids) == crowd
    assert len(set(ids)) == 1
    assert Job.objects.count() == 1


def test_many_at_once_in_crosswise_order_make_one_job_of_each_name():
    names = list(range(40))

    def enqueue(order):
        return lambda: charge.enqueue_many([((name,), {}) for name in order]).ids

    forth, back = in_threads(enqueue(names), enqueue(names[::-1]), timeout=120)

    assert forth == back[::-1]
    assert Job.objects.count() == 40


def test_the_callers_transaction_goes_on():
    charge.enqueue(7)

    with transaction.atomic():
        assert not charge.enqueue(7).is_new
        assert Job.objects.count() == 1
        charge.enqueue(8)
    assert Job.objects.count() == 2


def test_a_name_is_free_when_its_job_has_ended():
    first = charge.enqueue(7)
    run_jobs()

    second = charge.enqueue(7)

    assert second.id != first.id
    assert second.is_new


def test_a_running_job_still_has_its_name_until_it_is_finished():
    charge.enqueue(7)
    (attempt,) = claim(a_worker())

    assert charge.enqueue(7).disposition == "running"
    settle(DATABASE, [success(attempt)])
    assert charge.enqueue(7).is_new


def test_a_name_until_the_start_is_free_once_its_job_was_claimed():
    first = mail.enqueue(1)
    (attempt,) = claim(a_worker())

    second = mail.enqueue(1)
    settle(DATABASE, [given_back(attempt)])

    assert second.id != first.id
    assert not mail.enqueue(1).is_new


def test_a_retry_keeps_its_name_and_a_person_s_retry_does_not_take_it_again():
    job = charge.enqueue(7)
    (attempt,) = claim(a_worker())
    settle(DATABASE, [another_try(attempt, delay=60.0)])
    assert charge.enqueue(7).id == job.id

    cancel(DATABASE, [row(job.id).pk])
    assert charge.enqueue(7).is_new
    retry(DATABASE, [row(job.id).pk])
    assert Job.objects.exclude(unique_hash=None).count() == 1


def test_replace_gives_the_job_that_waits_the_last_arguments():
    first = report.enqueue("monday", pages=1)
    second = report.using(run_after=timedelta(hours=1), priority=5).enqueue("monday", pages=9)

    assert (second.id, second.disposition) == (first.id, "replaced")
    assert (second.kwargs, second.task.priority) == ({"pages": 9}, 5)
    assert claim(a_worker()) == []


def test_replace_leaves_a_job_that_runs_as_it_is():
    report.enqueue("monday", pages=1)
    (attempt,) = claim(a_worker())

    second = report.enqueue("monday", pages=9)

    assert (second.disposition, second.kwargs) == ("running", {"pages": 1})
    assert attempt.kwargs == '{"pages":1}'


def test_raise_says_which_job_has_the_name_and_breaks_no_transaction():
    first = pay.enqueue(7)

    with transaction.atomic():
        with pytest.raises(errors.NotUnique, match="is waiting and has this name already") as told:
            pay.enqueue(7)
        assert told.value.job == first.id
        pay.enqueue(8)
    assert Job.objects.count() == 2


def test_raise_in_many_stores_none_of_them():
    pay.enqueue(7)

    with pytest.raises(errors.NotUnique):
        pay.enqueue_many([((number,), {}) for number in (1, 2, 7)])

    assert Job.objects.count() == 1


def test_a_window_keeps_a_name_although_its_job_has_ended():
    first = once_in_ten_minutes.enqueue()
    assert run_jobs() == 1

    again = once_in_ten_minutes.enqueue()
    assert (again.id, again.disposition) == (first.id, "ended")
    assert again.status == TaskResultStatus.SUCCESSFUL
    with moved_clock("11m"):
        assert once_in_ten_minutes.enqueue().is_new
        assert once_in_ten_minutes.enqueue_many([((0,), {}), ((1,), {})])[1].is_new


def test_of_many_with_one_name_the_first_is_kept():
    there = charge.enqueue(1, amount=5)

    results = charge.enqueue_many([((number % 3,), {"amount": number}) for number in range(9)])

    assert results.ids[1] == there.id
    assert results.ids[:3] == results.ids[3:6] == results.ids[6:]
    assert [one.is_new for one in results] == [True, False, True, *[False] * 6]
    assert results[1].kwargs == {"amount": 5}
    assert [one.id for one in results[1:3]] == results.ids[1:3]
    assert Job.objects.count() == 3


def test_debounce_runs_the_last_of_many_once_it_is_quiet():
    ids = {reindex.enqueue(1, [field]).id for field in ("name", "price", "stock")}

    assert len(ids) == 1
    assert run_jobs() == 0
    with moved_clock("20s"):
        reindex.enqueue(1, ["last"])
        with moved_clock("20s"):
            assert run_jobs() == 0
            with moved_clock("11s"):
                assert run_jobs() == 1
    assert Job.objects.get().return_value == '["last"]'


def test_what_comes_while_a_debounced_job_runs_is_not_lost():
    reindex.enqueue(1, ["first"])
    with moved_clock("31s"):
        run_jobs(max_jobs=0)
        from django_once.models.job.ready import promote

        promote(DATABASE)
        (attempt,) = claim(a_worker())

        assert reindex.enqueue(1, ["second"]).is_new
        settle(DATABASE, [success(attempt)])


def test_cooldown_runs_the_first_and_none_for_a_while():
    first = alert.enqueue("db1", 9)
    assert run_jobs() == 1

    assert alert.enqueue("db1", 12).id == first.id
    assert alert.enqueue("db2", 12).is_new
    with moved_clock("61m"):
        assert alert.enqueue("db1", 3).is_new
