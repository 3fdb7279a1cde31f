"""Enqueue: a job exists if and only if its transaction commits, and bad input never does."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, transaction
from django.test import override_settings

from django_once import compat, task
from django_once.compat import InvalidTask
from django_once.errors import InvalidOption
from django_once.models import Job
from django_once.testing import enqueued_jobs
from tests.app import tasks
from tests.app.models import Note
from tests.settings import TASKS

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

DRAWN = [uuid.UUID(int=7, version=4)]


def draw():
    return DRAWN[0]


def draw_rubbish():
    return DRAWN[1]


def django_s_task(**said):
    if compat.LOGGER == "django.tasks":
        from django.tasks import task
    else:
        from django_tasks import task
    return task(**said)


def plain() -> None: ...


@django_s_task(backend="dummy")
def theirs(a: int) -> int:
    return a


@contextmanager
def options(**said):
    """Let the default backend have these options."""
    with override_settings(TASKS={**TASKS, "default": {**TASKS["default"], "OPTIONS": said}}):
        yield


def count(database: str = "default") -> int:
    return Job.objects.using(database).count()


# What is stored


def test_a_job_is_stored_with_what_was_said_of_its_task():
    result = tasks.note_once.using(queue_name="mail", priority=7).enqueue("hello")

    job = Job.objects.get(pk=result.id)
    assert (job.task, job.queue, job.priority) == ("tests.app.tasks.note_once", "mail", 7)
    assert (job.args, job.kwargs, job.backend) == ('["hello"]', "{}", "default")
    assert (job.delivery, job.timeout, job.max_attempts) == ("exactly_once", 1.0, 1)
    assert job.status == Job.READY
    assert job.position is not None


def test_the_result_shows_what_the_task_will_receive():
    result = tasks.echo.enqueue((1, 2), key=("a",))

    assert (result.args, result.kwargs) == ([[1, 2]], {"key": ["a"]})
    assert result.status == compat.TaskResultStatus.READY
    assert result.enqueued_at is not None
    assert (result.started_at, result.finished_at, result.attempts) == (None, None, 0)


@pytest.mark.parametrize("wish", [timedelta(hours=1), datetime(2099, 1, 1, tzinfo=UTC)])
def test_a_job_for_later_has_no_place_among_the_ready(wish):
    result = tasks.add.using(run_after=wish).enqueue(1)

    assert Job.objects.get(pk=result.id).position is None
    assert result.task.run_after > datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("wish", [timedelta(0), datetime(2001, 1, 1, tzinfo=UTC)])
def test_a_job_whose_time_has_come_is_ready_at_once(wish):
    result = tasks.add.using(run_after=wish).enqueue(1)

    assert Job.objects.get(pk=result.id).position is not None


def test_the_wish_comes_back_as_a_moment():
    result = tasks.add.using(run_after=timedelta(hours=1)).enqueue(1)

    stored = tasks.add.get_result(result.id)

    assert result.task.run_after == stored.task.run_after
    assert stored.task.run_after == result.enqueued_at + timedelta(hours=1)


def test_an_exactly_once_default_does_not_give_at_most_once_a_second_start():
    from django_once import Retry

    with options(RETRY=Retry(max_attempts=5)):
        once = tasks.fail_once.enqueue()
        often = tasks.fail.enqueue()

    assert Job.objects.get(pk=once.id).max_attempts == 1
    assert Job.objects.get(pk=often.id).max_attempts == 5


# Transactions


def test_a_job_of_a_transaction_that_rolls_back_never_was():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Note.objects.create(text="gone")
        result = tasks.add.enqueue(1)
        raise ZeroDivisionError

    with pytest.raises(compat.TaskResultDoesNotExist, match="its transaction was rolled back"):
        result.refresh()
    assert (count(), Note.objects.count()) == (0, 0)


def test_in_a_broken_transaction_nothing_is_enqueued_and_django_says_so():
    with pytest.raises(transaction.TransactionManagementError):
        with transaction.atomic():
            with pytest.raises(DatabaseError):
                with connections["default"].cursor() as cursor:
                    cursor.execute("SELECT nothing FROM nowhere")
            transaction.set_rollback(True)
            tasks.add.enqueue(1)

    assert count() == 0


def test_a_refused_enqueue_leaves_the_callers_transaction_whole():
    with transaction.atomic():
        Note.objects.create(text="kept")
        with pytest.raises(TypeError):
            tasks.add.enqueue({1, 2})
        with pytest.raises(ValueError, match="NUL"):
            tasks.add.enqueue("\x00")

    assert (count(), Note.objects.count()) == (0, 1)


@pytest.mark.django_db(databases=["default", "other"])
def test_a_job_stands_in_the_database_of_its_backend():
    result = tasks.add_elsewhere.enqueue(1, 2)

    assert (count("default"), count("other")) == (0, 1)
    assert tasks.add_elsewhere.get_result(result.id).id == result.id
    with pytest.raises(compat.TaskResultDoesNotExist):
        tasks.add_elsewhere.using(backend="default").get_result(result.id)


# Arguments


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"c": 2}, "got an unexpected keyword argument 'c'"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_signature(args, kwargs, reason):
    expected = re.escape(f"tests.app.tasks.add(a: int, b: int = 1) -> int: {reason}.")
    # Signatures of modules with postponed annotations are written with quotes.
    expected = expected.replace("int", "'?int'?")

    with pytest.raises(TypeError, match=expected):
        tasks.add.enqueue(*args, **kwargs)

    assert count() == 0


def test_the_context_is_not_the_callers_to_give():
    with pytest.raises(TypeError, match="too many positional arguments"):
        tasks.tell.enqueue("context")

    assert tasks.tell.enqueue().args == []


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("a\x00b", ValueError),
        ("\ud800", ValueError),
        (2**70, ValueError),
        ("x" * 10_000_000, ValueError),
        (b"bytes", TypeError),
        ({1, 2}, TypeError),
        (datetime(2026, 1, 1), TypeError),
        (Decimal("1.5"), TypeError),
        ({1: 2}, TypeError),
        (Note(text="a row"), TypeError),
    ],
    ids=lambda value: repr(value)[:20],
)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_value_that_would_be_lost_or_changed_is_refused_and_nothing_is_stored(value, error, many):
    with pytest.raises(error, match=r"^(Unsupported type: .*)?(args|kwargs).*\.$|at args.*\.$"):
        if many:
            tasks.echo.enqueue_many([((1,), {}), ((value,), {})])
        else:
            tasks.echo.enqueue(value)

    assert count() == 0


def test_depth_is_refused_and_not_an_overflow():
    value: list = []
    for _ in range(1_000):
        value = [value]

    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        tasks.echo.enqueue(value)


def test_the_caller_s_own_list_may_change_afterwards():
    mine = [1]
    result = tasks.echo.enqueue(mine)

    mine.append(2)

    assert result.args == [[1]]


# Many


def test_many_jobs_are_stored_in_one_statement(django_assert_max_num_queries):
    calls = [((number,), {"b": 2}) for number in range(1_000)]

    with django_assert_max_num_queries(4):
        results = tasks.add.enqueue_many(calls)

    assert (count(), len(results)) == (1_000, 1_000)
    assert (results[0].args, results[-1].args) == ([0], [999])
    assert [result.id for result in results] == results.ids == sorted(results.ids)
    assert [result.args[0] for result in results[5:8]] == [5, 6, 7]
    assert tasks.add.get_result(results[500].id).args == [500]


def test_ten_thousand_jobs_from_a_generator():
    results = tasks.add.enqueue_many(((number,), {}) for number in range(10_000))

    assert (count(), len(results), len(set(results.ids))) == (10_000, 10_000, 10_000)


@pytest.mark.parametrize("nothing", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_no_calls_are_no_jobs(nothing):
    results = tasks.add.enqueue_many(nothing)

    assert (len(results), list(results), results.ids, count()) == (0, [], [], 0)


@pytest.mark.parametrize(
    "calls",
    [[1], [(1, {})], [((1,), [])], [((1,),)], [((1,), {}, 3)], ["ab"], [None], [{"a": 1}], "ab"],
    ids=repr,
)
def test_what_is_no_pair_is_refused(calls):
    with pytest.raises(TypeError, match=r"^enqueue_many takes \(args, kwargs\) pairs, got "):
        tasks.add.enqueue_many([((1,), {}), *calls])

    assert count() == 0


def test_one_call_that_does_not_fit_refuses_all():
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        tasks.add.enqueue_many([((1,), {}), ((), {})])

    assert count() == 0


def test_many_jobs_for_later_have_no_place_among_the_ready():
    tasks.add.using(run_after=timedelta(hours=1)).enqueue_many([((1,), {}), ((2,), {})])

    assert Job.objects.filter(position=None).count() == 2


# Tasks


def test_a_task_whose_path_leads_to_another_function_is_refused(monkeypatch):
    from django_once.definitions import registry

    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    older = task(plain)
    monkeypatch.setattr(plain, "__qualname__", "add")
    monkeypatch.setattr(plain, "__module__", "tests.app.tasks")

    with pytest.raises(InvalidTask, match=r"Two tasks have the path 'tests\.app\.tasks\.add'"):
        older.enqueue()

    assert count() == 0


def test_a_foreign_task_is_enqueued_here_by_using():
    result = theirs.using(backend="default").enqueue(5)

    assert Job.objects.get(pk=result.id).task == f"{__name__}.theirs"
    assert result.task.backend == "default"


def test_a_backend_that_is_asked_by_its_name_says_so_in_the_result():
    result = compat.task_backends["default"].enqueue(theirs, [5], {})

    assert (result.backend, result.task.backend) == ("default", "default")
    result.refresh()


# Ids


def test_ids_are_drawn_by_the_function_that_the_settings_name():
    with options(ID_FUNCTION=f"{__name__}.draw"):
        result = tasks.add.enqueue(1)

    assert result.id == str(DRAWN[0])


@pytest.mark.parametrize("drawn", ["mine", "", None, 5, b"x" * 16, "x" * 36, uuid.uuid4])
def test_an_id_that_is_none_is_refused(drawn):
    DRAWN[1:] = [drawn]

    with options(ID_FUNCTION=f"{__name__}.draw_rubbish"):
        with pytest.raises(InvalidOption, match="must return a UUID or its text, got"):
            tasks.add.enqueue(1)

    assert count() == 0


def test_an_id_that_is_taken_is_refused_and_the_transaction_goes_on():
    with options(ID_FUNCTION=draw):
        tasks.add.enqueue(1)
        with pytest.raises(InvalidOption, match="returned an id that a job has already"):
            tasks.add.enqueue(2)
        with pytest.raises(InvalidOption, match="returned an id that a job has already"):
            tasks.add.enqueue_many([((3,), {}), ((4,), {})])
        Note.objects.create(text="kept")

    assert [result.args for result in enqueued_jobs()] == [[1]]


@pytest.mark.django_db(transaction=True)
def test_an_id_that_is_taken_is_refused_outside_a_transaction_too():
    with options(ID_FUNCTION=draw):
        tasks.add.enqueue(1)
        with pytest.raises(InvalidOption, match="returned an id that a job has already"):
            tasks.add.enqueue(2)

    assert count() == 1


# Settings


@pytest.mark.parametrize(
    "said", [{"LEASES": "60s"}, {"LEASE": "soon"}, {"DATABASE": None}, {"DEATHS": -1}]
)
def test_a_wrong_setting_is_told_by_the_first_use_with_its_place(said):
    (key,) = said

    with options(**said):
        changed = tasks.add.using(priority=1)
        with pytest.raises(InvalidOption, match=re.escape(f"TASKS['default']['OPTIONS'][{key!r}]")):
            changed.enqueue(1)


def test_several_backends_may_share_a_database_and_keep_apart():
    more = {**TASKS, "second": {"BACKEND": TASKS["default"]["BACKEND"]}}

    with override_settings(TASKS=more):
        first, second = tasks.add.enqueue(1), tasks.add.using(backend="second").enqueue(2)

        assert [result.id for result in enqueued_jobs()] == [first.id]
        assert [result.id for result in enqueued_jobs(alias="second")] == [second.id]
        with pytest.raises(compat.TaskResultDoesNotExist):
            tasks.add.get_result(second.id)


# Async


def test_every_verb_has_an_async_name():
    async def all_of_them():
        one = await tasks.add.aenqueue(1, b=2)
        many = await tasks.add.aenqueue_many([((3,), {}), ((4,), {})])
        again = await tasks.add.aget_result(one.id)
        await again.arefresh()
        return one, many, again

    one, many, again = async_to_sync(all_of_them)()

    assert (one.args, one.kwargs, again.args) == ([1], {"b": 2}, [1])
    assert [result.args for result in many] == [[3], [4]]


def test_an_async_enqueue_joins_the_transaction_of_sync_code():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        async_to_sync(tasks.add.aenqueue)(1)
        assert count() == 1
        raise ZeroDivisionError

    assert count() == 0


def test_what_is_refused_is_refused_in_async_code_too():
    with pytest.raises(TypeError, match="missing a required argument"):
        async_to_sync(tasks.add.aenqueue)()
