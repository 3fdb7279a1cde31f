"""What a body that takes its context is given."""

from __future__ import annotations

import pytest

from django_once import Retry, compat, task
from django_once.context import Context
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

SEEN: list = []


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


@task(takes_context=True, retry=Retry(max_attempts=3, base="10s", jitter=0))
def look_twice(context, value: int) -> int:
    SEEN.append((context.attempt, context.fence, context.idempotency_key("charge")))
    if context.attempt == 1:
        raise ValueError
    return value


@task(takes_context=True)
def look(context) -> None:
    SEEN.append(context)


@task(takes_context=True)
def look_at_result(context, a: int, b: int) -> None:
    result = context.task_result
    SEEN.append((result.status, result.args, result.kwargs, result.attempts, result.worker_ids))
    SEEN.append((result.started_at is not None, result.finished_at, result.is_finished))


def test_the_context_names_the_job_and_its_attempt():
    result = tasks.tell.enqueue()

    run_jobs()
    result.refresh()

    assert result.return_value == [result.id, 1, 1, "RUNNING"]


def test_attempts_and_fences_grow_and_the_key_stays():
    result = look_twice.enqueue(7)

    run_jobs()
    with moved_clock("10s"):
        run_jobs()

    (first, second) = SEEN
    assert (first[0], second[0]) == (1, 2)
    assert first[1] < second[1]
    assert first[2] == second[2] == f"{result.id}:charge"


def test_the_result_in_the_context_is_the_running_attempts():
    look_at_result.enqueue(1, b=2)

    run_jobs(worker_id="ann")

    assert SEEN == [("RUNNING", [1], {"b": 2}, 1, ["ann"]), (True, None, False)]


def test_the_context_is_djangos_and_a_result_is_read_only_when_asked(django_assert_num_queries):
    look.enqueue()
    run_jobs()
    (context,) = SEEN

    assert isinstance(context, Context)
    assert isinstance(context, compat.TaskContext)
    with django_assert_num_queries(0):
        assert (context.attempt, context.fence, len(context.job_id)) == (1, 1, 36)
        assert repr(context) == f"Context(job_id={context.job_id!r}, attempt=1, fence=1)"
    with django_assert_num_queries(1):
        assert context.task_result is context.task_result


def test_a_context_is_equal_to_itself_only():
    look.enqueue()
    look.enqueue()
    run_jobs()
    one, other = SEEN

    assert one == one
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_key_needs_the_name_of_its_effect(name):
    look.enqueue()
    run_jobs()

    with pytest.raises(ValueError, match="needs the name of its effect"):
        SEEN[0].idempotency_key(name)
