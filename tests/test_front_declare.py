"""`task`: what may be declared, what is refused while a module loads, and foreign backends."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
from datetime import UTC, datetime, timedelta

import django
import pytest
from django.test import override_settings

from django_once import Retry, clock, compat, declare, task
from django_once.compat import InvalidTask, InvalidTaskBackend
from django_once.definitions import registry
from django_once.errors import InvalidOption
from tests.app import tasks
from tests.settings import DJANGO_BACKENDS, TASKS


def plain(a: int = 0) -> int:
    return a


def with_context(context, a):
    return a


def yields():
    yield 1


async def yields_later():
    yield 1


@task(backend="dummy", delivery="exactly_once", retry=Retry(max_attempts=2))
def elsewhere(a: int) -> int:
    return a


@task(backend="immediate", takes_context=True)
def at_once(context, a: int) -> int:
    return a + context.attempt


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """Let a test declare what no other test shall see."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.setattr(registry, "_options", dict(registry._options))


@pytest.fixture
def dummy():
    backend = compat.task_backends["dummy"]
    backend.clear()
    yield backend
    backend.clear()


def test_a_task_keeps_what_was_said_of_it():
    declared = task(
        queue_name="mail",
        priority=7,
        timeout="5m",
        expires=60,
        max_deaths=1,
        delivery="at_most_once",
    )(plain)

    assert (declared.queue_name, declared.priority, declared.max_deaths) == ("mail", 7, 1)
    assert (declared.timeout, declared.expires) == (timedelta(minutes=5), timedelta(minutes=1))
    assert declared.module_path == f"{__name__}.plain"
    assert declare.options_of(declared) == {
        "delivery": "at_most_once",
        "timeout": timedelta(minutes=5),
        "expires": timedelta(minutes=1),
        "max_deaths": 1,
    }


def test_a_task_is_django_s_too():
    assert isinstance(tasks.add, compat.Task)
    assert tasks.add.call(1, b=2) == 3
    assert asyncio.run(tasks.add_later.acall(1, 2)) == 3


def test_a_task_is_not_called_like_its_function():
    with pytest.raises(TypeError, match=r"use add\.enqueue\(…\) to run it in the background"):
        tasks.add(1, 2)


def test_using_changes_a_copy():
    changed = tasks.add.using(queue_name="mail", priority=5)

    assert (changed.queue_name, changed.priority) == ("mail", 5)
    assert (tasks.add.queue_name, tasks.add.priority) == ("default", 0)
    assert tasks.add.using() == tasks.add
    assert isinstance(changed, type(tasks.add))


@pytest.mark.parametrize("twice", [task, lambda declared: task(queue_name="mail")(declared)])
def test_a_task_that_is_decorated_twice_is_refused(twice):
    with pytest.raises(InvalidOption, match=r"tasks\.add is a task already.* Keep one @task\.$"):
        twice(tasks.add)


@pytest.mark.parametrize("thing", [5, "mail", object()])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(InvalidOption, match=r"^@task takes a function, got "):
        task(thing)


@pytest.mark.parametrize(
    "function",
    [lambda: None, functools.partial(plain, 1), print, int, "".join, object().__init__],
    ids=["local lambda", "partial", "builtin", "class", "method", "wrapper"],
)
def test_what_is_no_function_of_a_module_is_refused(function):
    with pytest.raises(InvalidTask, match="Task function must be defined at a module level."):
        task(function)


def test_a_local_function_is_refused():
    def local():
        return None

    with pytest.raises(InvalidTask, match="Task function must be defined at a module level."):
        task(local)


def test_a_lambda_of_a_module_is_refused_since_no_path_leads_to_it():
    namespace = {"__name__": __name__}
    exec("nameless = lambda: None", namespace)

    with pytest.raises(InvalidTask, match="A lambda has no name by which a worker could find it"):
        task(namespace["nameless"])


@pytest.mark.parametrize("function", [yields, yields_later])
def test_a_generator_is_refused_since_calling_it_runs_nothing(function):
    with pytest.raises(InvalidTask, match="is a generator: calling it runs nothing of it"):
        task(function)


def test_a_path_that_no_column_holds_is_refused():
    def long_named():
        return None

    long_named.__qualname__ = "x" * 250

    with pytest.raises(InvalidTask, match="is longer than the 255 characters"):
        task(long_named)


def test_a_task_that_takes_its_context_must_have_room_for_it():
    with pytest.raises(InvalidTask, match="does not have a first argument of 'context'"):
        task(takes_context=True)(plain)

    assert task(takes_context=True)(with_context).takes_context


@pytest.mark.parametrize(
    "priority", [101, -101, 1.5, "5", float("nan"), float("inf"), None, [], 10**30]
)
def test_a_priority_out_of_range_or_fractional_is_refused(priority):
    with pytest.raises(InvalidTask, match="priority must be a whole number between -100 and 100."):
        task(priority=priority)(plain)


@pytest.mark.parametrize("priority", [-100, 100, 5.0, True])
def test_a_whole_priority_is_taken(priority):
    assert task(priority=priority)(plain).priority == priority


@pytest.mark.parametrize("queue", ["", "x" * 65, "a,b", "*", " mail", "a\nb", None, 5, ["mail"]])
def test_a_queue_whose_name_is_none_is_refused(queue):
    with pytest.raises(InvalidTask, match=r"^A queue's name has "):
        task(queue_name=queue)(plain)


def test_a_queue_that_the_backend_does_not_have_is_refused():
    with pytest.raises(InvalidTask, match="Queue 'post' is not valid for backend."):
        task(queue_name="post")(plain)

    assert task(queue_name="post", backend="other")(plain).queue_name == "post"


def test_a_backend_that_is_not_there_is_refused():
    with pytest.raises(InvalidTaskBackend, match="'nowhere'"):
        task(backend="nowhere")(plain)


def test_run_after_is_not_said_in_the_decorator():
    with pytest.raises(TypeError, match="run_after cannot be defined statically"):
        task(run_after=timedelta(minutes=1))(plain)


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        (datetime(2026, 1, 1), "run_after must be an aware datetime."),
        (timedelta(seconds=-1), "run_after must not be negative"),
        (timedelta(days=5_000), "run_after must be at most ten years"),
        (datetime.max.replace(tzinfo=UTC), "run_after must be from 1970 to 9998"),
        (datetime(999, 1, 1, tzinfo=UTC), "run_after must be from 1970 to 9998"),
        ("5m", "run_after must be an aware datetime or a timedelta, got '5m'."),
        (60, "run_after must be an aware datetime or a timedelta, got 60."),
        (datetime(2026, 1, 1).date(), "run_after must be an aware datetime or a timedelta"),
    ],
)
def test_a_wish_that_cannot_be_meant_is_refused(wish, sentence):
    with pytest.raises(InvalidTask, match=sentence.replace(".", r"\.")):
        tasks.add.using(run_after=wish)


@pytest.mark.parametrize("wish", [timedelta(0), datetime(2001, 1, 1, tzinfo=UTC)])
def test_a_wish_that_is_over_already_is_taken(wish):
    assert tasks.add.using(run_after=wish).run_after == wish


def test_a_naive_wish_is_taken_where_the_project_has_no_zones():
    wish = datetime(2026, 1, 1)

    with override_settings(USE_TZ=False):
        assert tasks.add.using(run_after=wish).run_after == wish


def test_an_unknown_option_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match="Did you mean 'timeout'?"):
        task(timeot="5m")(plain)


def test_django_s_own_decorator_declares_tasks_of_ours():
    declared = (django_task())(plain)

    assert isinstance(declared, declare.Task)


@pytest.mark.skipif(
    (6, 0) <= django.VERSION < (6, 1), reason="Django 6.0's own @task forwards no options."
)
def test_django_s_own_decorator_forwards_our_options():
    declared = django_task()(delivery="exactly_once", timeout="5m")(plain)

    assert declare.options_of(declared) == {
        "delivery": "exactly_once",
        "timeout": timedelta(minutes=5),
    }


def django_task():
    if django.VERSION >= (6, 0):
        from django.tasks import task
    else:
        from django_tasks import task
    return task


# Backends of others


def test_over_a_foreign_backend_a_task_keeps_its_words(dummy):
    result = elsewhere.enqueue(7)

    assert (result.task.func, result.args) == (elsewhere.func, [7])
    assert declare.options_of(elsewhere) == {
        "delivery": "exactly_once",
        "retry": Retry(max_attempts=2),
    }


def test_an_immediate_backend_runs_the_body_at_once():
    assert at_once.enqueue(1).return_value == 2
    assert asyncio.run(at_once.aenqueue(1)).return_value == 2


def test_enqueue_many_works_over_a_foreign_backend_too(dummy):
    results = elsewhere.enqueue_many([((1,), {}), ((), {"a": 2})])

    assert [(result.args, result.kwargs) for result in results] == [([1], {}), ([], {"a": 2})]
    with pytest.raises(TypeError, match="takes"):
        elsewhere.enqueue_many([(1, {}), 2])
    assert len(dummy.results) == 2


def test_a_timedelta_becomes_a_moment_when_a_foreign_backend_is_asked(dummy):
    later = elsewhere.using(run_after=timedelta(hours=1))
    before = clock.host_now()

    (moment,) = {later.enqueue(1).task.run_after}

    assert later.run_after == timedelta(hours=1)
    assert timedelta(hours=1) <= moment - before < timedelta(hours=1, minutes=1)


def test_what_a_foreign_backend_cannot_do_is_still_refused():
    with pytest.raises(InvalidTask, match="does not support run_after"):
        at_once.using(run_after=timedelta(hours=1))


def test_a_backend_that_insists_on_its_own_tasks_gets_them():
    settings = {**TASKS, "own": {"BACKEND": f"{__name__}.OwnBackend"}}

    with override_settings(TASKS=settings):
        declared = task(backend="own", timeout="5m")(plain)

        assert type(declared) is OwnTask
        assert declare.options_of(declared) == {"timeout": timedelta(minutes=5)}
        assert registry.find(f"{__name__}.plain") is declared


class OwnTask(compat.Task):
    """The task of a backend that has its own."""


class OwnBackend(compat.BaseTaskBackend):
    task_class = OwnTask

    def enqueue(self, task, args, kwargs): ...


def test_a_task_goes_from_a_foreign_backend_to_ours_and_back(dummy):
    ours = elsewhere.using(backend="default")
    back = ours.using(backend="dummy")

    assert isinstance(ours.get_backend(), type(compat.task_backends["default"]))
    assert declare.options_of(ours) == declare.options_of(back) == declare.options_of(elsewhere)
    assert back.enqueue(1).backend == "dummy"


def test_changed_settings_are_asked_anew():
    with override_settings(
        TASKS={"default": {"BACKEND": f"{DJANGO_BACKENDS}.immediate.ImmediateBackend"}}
    ):
        assert tasks.add.enqueue(1, 2).return_value == 3
    with override_settings(
        TASKS={"default": {"BACKEND": TASKS["default"]["BACKEND"], "QUEUES": ["mail"]}}
    ):
        with pytest.raises(InvalidTask, match="Queue 'default' is not valid"):
            tasks.add.using(priority=1)

    assert tasks.add.using(priority=1).priority == 1


# Copies


def test_a_task_is_copied_and_pickled_by_its_path():
    changed = tasks.fail_again.using(priority=5)

    assert pickle.loads(pickle.dumps(changed)) == changed
    assert copy.deepcopy(changed) == changed
    assert pickle.loads(pickle.dumps(changed)).func is tasks.fail_again.func
