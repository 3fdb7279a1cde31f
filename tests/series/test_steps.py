"""Steps that are not taken again, and progress that is told."""

from __future__ import annotations

import pytest

from django_once.errors import InvalidOption
from django_once.models import Progress, Step
from django_once.models.job.prune import prune
from django_once.models.job.settle import settle
from django_once.models.step import take, tell_progress
from django_once.sql.values import Told
from django_once.testing import moved_clock, run_jobs
from tests.app.models import Note
from tests.jobs import DATABASE, claim_one, given_back, store
from tests.series import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_step_is_taken_once_and_keeps_its_result_for_later_attempts():
    result = tasks.order.enqueue("a")

    with moved_clock() as clock:
        for _ in range(3):
            run_jobs()
            clock.advance("1m")

    result.refresh()
    assert result.return_value == [1, 3]
    assert list(Note.objects.order_by("id").values_list("text", flat=True)) == ["a True 1"] * 3


def test_a_step_of_an_attempt_that_lost_its_job_is_not_kept():
    store()
    late = claim_one()
    settle(DATABASE, [given_back(late)])
    claim_one()

    assert not take(DATABASE, late.id, late.claim, "reserve", "1")
    assert not Step.objects.exists()


def test_a_body_that_awaits_has_steps_and_progress_too():
    result = tasks.order_async.enqueue()

    run_jobs()
    result.refresh()

    assert result.return_value == 7
    assert (result.progress.done, result.progress.total) == (1, 2)


def test_a_name_for_two_steps_is_refused():
    result = tasks.twice.enqueue()

    run_jobs()
    result.refresh()

    assert "is taken twice in one attempt" in result.errors[0].traceback


def test_the_last_word_of_a_body_stays():
    result = tasks.count.enqueue(5)
    assert result.progress is None

    run_jobs()

    told = result.progress
    assert (told.done, told.total, told.message) == (5, 5, "5 of 5 lines")
    assert str(told) == "5 of 5"


def test_progress_of_a_late_attempt_does_not_overwrite_its_successors():
    job = store()
    late = claim_one()
    settle(DATABASE, [given_back(late)])
    fresh = claim_one()

    for attempt, done in ((fresh, 2.0), (late, 1.0)):
        tell_progress(DATABASE, [Told(job, attempt.claim, done, None, "")])

    assert Progress.objects.get().done == 2


def test_what_a_job_left_goes_with_it():
    tasks.order_async.enqueue()
    run_jobs()

    from datetime import timedelta

    with moved_clock("1h"):
        assert prune(DATABASE, None, {"SUCCESSFUL": timedelta(minutes=1)}) == 1

    assert not Step.objects.exists()
    assert not Progress.objects.exists()


@pytest.mark.parametrize("done", [float("nan"), -1, "3", None, True])
def test_progress_is_told_in_numbers(done):
    from django_once.steps import told

    with pytest.raises(InvalidOption, match="must be a number"):
        told(done, 10, "")
