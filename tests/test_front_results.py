"""A job as its caller sees it: Django's TaskResult, from READY to its end."""

from __future__ import annotations

import copy
import pickle
import uuid
from datetime import timedelta

import pytest
from django.test import override_settings

from django_once import compat
from django_once.compat import TaskResultDoesNotExist, TaskResultMismatch, TaskResultStatus
from django_once.definitions import registry
from django_once.models import Job
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks

pytestmark = [pytest.mark.engine, pytest.mark.django_db]


def test_a_result_follows_its_job_to_a_value():
    result = tasks.add.enqueue(1, b=2)
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value

    run_jobs(worker_id="ann")
    result.refresh()

    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 3)
    assert result.is_finished
    assert (result.worker_ids, result.attempts, result.errors) == (["ann"], 1, [])
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at


def test_a_result_follows_its_job_to_a_failure():
    result = tasks.fail.enqueue("broken")

    run_jobs(worker_id="ann")
    result.refresh()

    (error,) = result.errors
    assert result.status == TaskResultStatus.FAILED
    assert error.exception_class is ValueError
    assert "ValueError: broken" in error.traceback
    assert (result.worker_ids, result.attempts) == (["ann"], 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_each_attempt_leaves_its_worker_and_its_error():
    result = tasks.fail_again.enqueue()

    run_jobs(worker_id="ann")
    result.refresh()
    waiting = (result.status, result.attempts)
    with moved_clock("10s") as clock:
        run_jobs(worker_id="bob")
        clock.advance("20s")
        run_jobs(worker_id="cid")
    result.refresh()

    assert waiting == (TaskResultStatus.READY, 1)
    assert result.status == TaskResultStatus.FAILED
    assert result.worker_ids == ["ann", "bob", "cid"]
    assert len(result.errors) == result.attempts == 3
    assert result.last_attempted_at - result.started_at >= timedelta(seconds=30)


@pytest.mark.parametrize(
    "id",
    ["", "mine", "\x00", "x" * 32, "x" * 36, "x" * 10_000, "a\x00" * 18, "🐘" * 36, "1-2",
     "{01a1f29b-f610-778d-9219-f7c38626595}", None, 5, b"x" * 16, uuid.UUID(int=5), [], object()],
    ids=lambda id: repr(id)[:20],
)  # fmt: skip
def test_an_id_that_never_was_ours_is_no_result(id):
    with pytest.raises(TaskResultDoesNotExist, match=r"^Backend 'default' has no job .{1,100}: "):
        tasks.add.get_result(id)


def test_an_unknown_id_is_no_result():
    with pytest.raises(TaskResultDoesNotExist, match="or it was pruned"):
        tasks.add.get_result(str(uuid.uuid4()))


def test_the_result_of_another_task_is_refused():
    result = tasks.add.enqueue(1)

    with pytest.raises(TaskResultMismatch, match=r"received 'tests\.app\.tasks\.add'"):
        tasks.echo.get_result(result.id)
    assert compat.task_backends["default"].get_result(result.id).task.func is tasks.add.func


def test_the_result_of_a_task_whose_code_is_gone_says_so(monkeypatch):
    result = tasks.add.enqueue(1)
    Job.objects.filter(pk=result.id).update(task="tests.app.tasks.renamed")

    with pytest.raises(TaskResultDoesNotExist, match=r"its task 'tests\.app\.tasks\.renamed' is"):
        result.refresh()


def test_a_job_whose_code_is_gone_waits_for_it_and_stops_nobody():
    lost, other = tasks.add.enqueue(1), tasks.add.enqueue(2)
    Job.objects.filter(pk=lost.id).update(task="nowhere.at_all")

    assert run_jobs() == 1

    other.refresh()
    job = Job.objects.get(pk=lost.id)
    assert other.return_value == 3
    assert (job.status, job.blocked_by, job.attempt) == (Job.READY, "unknown_task", 0)
    Job.objects.filter(pk=lost.id).update(task="tests.app.tasks.add")
    assert run_jobs() == 1


def test_a_task_may_move_out_of_queues_and_its_old_jobs_stay_readable():
    result = tasks.add.using(queue_name="mail").enqueue(1)
    Job.objects.filter(pk=result.id).update(queue="gone", priority=99)

    stored = tasks.add.get_result(result.id)

    assert (stored.task.queue_name, stored.task.priority) == ("gone", 99)
    assert run_jobs() == 1


def test_a_result_is_what_the_body_returned_as_json_keeps_it():
    result = tasks.echo.enqueue(1, key=None)

    run_jobs()
    result.refresh()

    assert result.return_value == {"args": [1], "kwargs": {"key": None}}


def test_moments_are_shown_as_the_project_shows_them():
    result = tasks.add.enqueue(1)

    with override_settings(USE_TZ=False):
        naive = tasks.add.get_result(result.id).enqueued_at

    assert naive.tzinfo is None
    assert result.enqueued_at.tzinfo is not None


def test_a_result_is_copied_and_pickled():
    fresh = tasks.add.using(priority=5).enqueue(1)
    run_jobs()
    stored = tasks.add.get_result(fresh.id)

    for result in (fresh, stored):
        again = pickle.loads(pickle.dumps(result))
        assert again == copy.deepcopy(result) == result
        assert again.task.func is tasks.add.func
    again.refresh()
    assert again.return_value == 2


def test_a_result_shows_no_more_than_its_repr_needs():
    assert repr(tasks.add.enqueue_many([((1,), {})])) == "<1 results of tests.app.tasks.add>"


def test_a_task_that_is_known_by_its_declaration_only_is_found(monkeypatch):
    result = tasks.add.enqueue(1)
    monkeypatch.delattr(tasks, "add")

    assert registry.find("tests.app.tasks.add") is not None
    assert run_jobs() == 1
    result.refresh()
    assert result.return_value == 2
