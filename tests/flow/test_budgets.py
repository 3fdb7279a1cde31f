"""Retry budgets: at most a share of a task's attempts are retries; what is beyond waits or ends."""

from __future__ import annotations

import pytest

from django_once import RetryBudget, task
from django_once.errors import InvalidOption
from django_once.models import Job, Tally
from django_once.models.stops import look_after_tallies
from django_once.testing import moved_clock, run_jobs
from tests.flow import tasks
from tests.flow.tasks import half_fails, retry_a_little, retry_or_end

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def beyond():
    return Job.objects.filter(blocked_by="budget").count()


def test_retries_beyond_the_budget_wait_and_the_first_attempts_do_not():
    retry_a_little.enqueue_many([((), {})] * 10)

    assert run_jobs() == 10

    # Half of ten, which are charged as they are allowed.
    assert beyond() == 5
    assert Job.objects.filter(status="READY", blocked_by="").count() == 5


def test_at_most_the_share_of_attempts_are_retries_over_the_window():
    tasks.ledger_of_calls.clear()
    retry_a_little.enqueue_many([((), {})] * 20)
    with moved_clock() as clock:
        for _ in range(30):
            run_jobs()
            clock.advance("2s")

        attempts = len(tasks.ledger_of_calls)

    assert attempts - 20 <= attempts * 0.5
    assert attempts > 30


def test_successes_make_room_for_those_who_wait():
    retry_a_little.enqueue_many([((), {})] * 10)
    run_jobs()
    assert beyond() == 5

    with moved_clock("11s"):
        retry_a_little.using(priority=10).enqueue_many([((False,), {})] * 4)
        run_jobs(max_jobs=4)

    # Half of fourteen are seven.
    assert beyond() == 3


def test_the_few_that_are_always_allowed_go_on_although_nothing_else_ends():
    retry_a_little.enqueue_many([((), {})] * 10)
    run_jobs()
    waiting = beyond()

    with moved_clock("2m"):
        assert look_after_tallies("default") == 2

    assert beyond() == waiting - 2


def test_a_budget_that_is_no_more_holds_nobody_back():
    retry_a_little.enqueue_many([((), {})] * 10)
    run_jobs()
    retry_or_end.enqueue()
    run_jobs()
    Tally.objects.exclude(task=retry_or_end.module_path).delete()

    assert look_after_tallies("default") == 5


def test_a_retry_beyond_the_budget_can_end_the_job():
    retry_or_end.enqueue_many([((), {})] * 5)

    run_jobs()

    failed = Job.objects.filter(status="FAILED", reason="budget")
    assert failed.count() == 4
    assert "ConnectionError" in failed[0].history


def test_an_explanation_says_how_the_budget_stands():
    jobs = retry_a_little.enqueue_many([((), {})] * 10)
    run_jobs()
    job = next(one for one in jobs if Job.objects.get(pk=one.id).blocked_by)

    said = job.explain().says

    assert "retry budget of task" in said
    assert "5 retries among 10 attempts in 60 s, where 50% may be, and 2 always" in said


def test_a_number_is_a_budget():
    assert half_fails.retry_budget == RetryBudget(0.25)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"share": 0}, "must be above 0 and at most 1"),
        ({"share": "much"}, "must be above 0 and at most 1"),
        ({"least": 0}, "least of a RetryBudget must be a whole number"),
        ({"within": 0}, "must be longer than nothing"),
        ({"beyond": "explode"}, "must be one of wait, end"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        RetryBudget(**said)


def test_what_is_never_tried_again_has_no_budget():
    with pytest.raises(InvalidOption, match="has no retries, so there is none to take"):

        @task(delivery="at_most_once", retry_budget=0.1)
        def charge() -> None: ...
