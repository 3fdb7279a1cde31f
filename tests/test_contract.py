"""What Django's documents promise of a backend beyond what its own tests ask; see tests/upstream.

Where page and code of Django differ, the test says which of them holds here.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.http import Http404, JsonResponse
from django.urls import path

from django_once import Retry, compat, task
from django_once.models import Job
from django_once.testing import moved_clock, run_jobs

pytestmark = pytest.mark.django_db

backend = compat.task_backends["default"]


@task
def add(a, b=0):
    return a + b


@task(takes_context=True)
def look_at_itself(context):
    result = context.task_result
    return [result.status, result.attempts, context.attempt, result.is_finished]


@task(takes_context=True)
async def alook_at_itself(context):
    return [context.task_result.id, context.task_result.attempts]


@task(retry=Retry(max_attempts=3, base="10s", jitter=0.0), takes_context=True)
def fail_twice(context):
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(takes_context=True)
def tamper_with_its_context(context):
    changed = []
    for name in ("task_result", "attempt", "fence", "job_id", "anything"):
        try:
            setattr(context, name, None)
        except AttributeError:
            continue
        changed.append(name)
    return changed


@task
def echo(value):
    return value


@pytest.fixture
def told():
    """Return what Django's signals told: which, by whom, in which state."""
    heard = []
    signals = {
        "enqueued": compat.task_enqueued,
        "started": compat.task_started,
        "finished": compat.task_finished,
    }
    receivers = {
        name: lambda sender, task_result, name=name, **_: heard.append(
            (name, sender, str(task_result.status))
        )
        for name in signals
    }
    for name, signal in signals.items():
        signal.connect(receivers[name])
    yield heard
    for name, signal in signals.items():
        signal.disconnect(receivers[name])


def test_a_result_is_the_same_for_who_enqueued_and_for_who_looks_later():
    words = add.using(priority=7, queue_name="mail", run_after=datetime(2999, 1, 1, tzinfo=UTC))

    result = words.enqueue(1, b=2)

    assert add.get_result(result.id) == result
    assert result.task == words


# Django's documents allow a timedelta; its own code fails on one.
def test_run_after_may_be_a_length_of_time_from_now():
    result = add.using(run_after=timedelta(minutes=5)).enqueue(1)

    assert run_jobs() == 0
    with moved_clock("5m"):
        assert run_jobs() == 1
    assert add.get_result(result.id).return_value == 1


def test_a_length_of_time_becomes_the_moment_that_it_names():
    result = add.using(run_after=timedelta(minutes=5)).enqueue(1)

    assert result.task.run_after == result.enqueued_at + timedelta(minutes=5)
    assert add.get_result(result.id) == result


# The documents say that a running attempt does not count; TaskContext.attempt needs that it does.
def test_a_running_attempt_counts():
    result = look_at_itself.enqueue()

    run_jobs()

    assert look_at_itself.get_result(result.id).return_value == ["RUNNING", 1, 1, False]


def test_an_async_body_may_look_at_its_context():
    result = alook_at_itself.enqueue()

    run_jobs()

    assert alook_at_itself.get_result(result.id).return_value == [result.id, 1]


@pytest.mark.parametrize("stored", [{"args": "["}, {"args": "{}"}, {"kwargs": "[]"}])
def test_a_row_that_no_function_can_be_called_with_fails_alone(stored):
    broken, whole = echo.enqueue(1), echo.enqueue(2)
    Job.objects.filter(pk=broken.id).update(**stored)

    run_jobs()

    states = Job.objects.in_bulk([broken.id, whole.id])
    assert [states[UUID(id)].status for id in (broken.id, whole.id)] == ["FAILED", "SUCCESSFUL"]


def test_each_attempt_leaves_its_worker_and_each_failure_its_error():
    result = fail_twice.enqueue()
    seen = []
    for minutes in range(3):
        with moved_clock(timedelta(minutes=minutes)):
            run_jobs(worker_id=f"worker {minutes}")
        result.refresh()
        seen.append((str(result.status), result.attempts, len(result.errors)))

    assert seen == [("READY", 1, 1), ("READY", 2, 2), ("SUCCESSFUL", 3, 2)]
    assert result.worker_ids == ["worker 0", "worker 1", "worker 2"]
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError]
    assert result.return_value == 3


# The documents say "on its first attempt"; other backends overwrite it.
def test_a_job_was_started_when_its_first_attempt_was():
    result = fail_twice.enqueue()
    run_jobs()
    result.refresh()
    first = result.started_at

    with moved_clock("1m"):
        run_jobs()
    result.refresh()

    assert result.started_at == first
    assert result.last_attempted_at >= first + timedelta(seconds=50)


@pytest.mark.parametrize(
    "value", [b"text", {1: "a"}, float("nan"), {1, 2}, datetime(2026, 1, 1, tzinfo=UTC)]
)
def test_an_argument_that_would_arrive_as_something_else_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        echo.enqueue(value)


def test_a_tuple_arrives_as_the_list_that_its_caller_sees():
    result = echo.enqueue((1, (2, 3)))

    run_jobs()

    assert result.args == [[1, [2, 3]]]
    assert echo.get_result(result.id).return_value == [1, [2, 3]]


def test_what_a_caller_does_to_a_result_changes_no_other():
    result = echo.enqueue({"a": [1]})

    result.args[0]["a"].append(2)
    result.errors.append("mine")

    assert echo.get_result(result.id).args == [{"a": [1]}]
    assert echo.get_result(result.id).errors == []


def test_signals_are_sent_by_the_class_of_the_backend(told):
    add.enqueue(1)

    run_jobs()

    assert told == [
        ("enqueued", type(backend), "READY"),
        ("started", type(backend), "RUNNING"),
        ("finished", type(backend), "SUCCESSFUL"),
    ]


def test_a_receiver_is_told_that_came_before_this_package():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-c", textwrap.dedent(EARLY_RECEIVER)]

    found = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)

    assert found.stdout.split() == ["RUNNING", "SUCCESSFUL"], found.stderr


EARLY_RECEIVER = """
    import django
    from django.conf import settings

    contract = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    settings.configure(
        INSTALLED_APPS=["django_once"] if contract == "django.tasks" else ["django_once", contract],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        TASKS={"default": {"BACKEND": "django_once.backend.DatabaseBackend"}},
    )
    from django_once import compat

    def tell(task_result, **_):
        print(task_result.status)

    compat.task_started.connect(tell)
    compat.task_finished.connect(tell)
    django.setup()

    from django.core.management import call_command
    from django_once import task
    from django_once.testing import run_jobs

    @task
    def answer():
        return 42

    call_command("migrate", verbosity=0)
    answer.enqueue()
    run_jobs()
"""


def test_a_job_whose_transaction_is_undone_was_never_there():
    with transaction.atomic():
        result = add.enqueue(1)
        transaction.set_rollback(True)

    with pytest.raises(compat.TaskResultDoesNotExist, match=result.id):
        add.get_result(result.id)


@pytest.mark.parametrize("id", ["", "123", 123, None, "x" * 36, "'; --", "\x00" * 32])
def test_what_never_was_an_id_is_a_result_that_does_not_exist(id):
    with pytest.raises(compat.TaskResultDoesNotExist):
        backend.get_result(id)


def test_an_id_is_text_of_less_than_64_characters():
    assert len(add.enqueue(1).id) == 36


def test_a_context_cannot_be_changed():
    result = tamper_with_its_context.enqueue()

    run_jobs()

    assert tamper_with_its_context.get_result(result.id).return_value == []


# Django's own can be pickled from 6.1 on.
@pytest.mark.parametrize("words", [add, add.using(priority=3, run_after=timedelta(hours=1))])
def test_a_task_and_its_result_can_be_pickled_on_every_django(words):
    result = words.enqueue(1)

    assert pickle.loads(pickle.dumps(words)) == words
    assert pickle.loads(pickle.dumps(result)) == result


def test_all_that_a_backend_may_support_is_supported():
    flags = ("defer", "async_task", "get_result", "priority")

    assert [getattr(backend, f"supports_{flag}") for flag in flags] == [True] * 4


UNKEEPABLE = {
    "nan": (float("nan"), "ValueError", "which JSON has no word for"),
    "infinity": (float("inf"), "ValueError", "which JSON has no word for"),
    "set": ({1}, "TypeError", "Unsupported type: <class 'set'>"),
    "bytes": (b"x", "TypeError", "JSON has no bytes"),
    "datetime": (datetime(2026, 1, 1, tzinfo=UTC), "TypeError", "Unsupported type"),
    "model": (Job(), "TypeError", "Unsupported type"),
    "nul": ("a\x00b", "ValueError", "NUL character"),
    "surrogate": ("\ud800", "ValueError", "lone surrogate"),
    "huge": (2**70, "ValueError", "beyond 64 bits"),
    "number as a key": ({1: "a"}, "TypeError", "JSON keys are text"),
    "long": ("x" * 1_000_001, "ValueError", "may take 1,000,000"),
    "a class": (ValueError, "TypeError", "Unsupported type"),
}


@task
def give_back(name):
    return UNKEEPABLE[name][0] if name in UNKEEPABLE else name


@pytest.mark.parametrize("name", UNKEEPABLE)
def test_a_result_that_cannot_be_kept_fails_its_attempt_with_a_sentence_and_no_other(name):
    broken, whole = give_back.enqueue(name), give_back.enqueue("whole")

    assert run_jobs() == 2

    broken.refresh()
    whole.refresh()
    _, kind, sentence = UNKEEPABLE[name]
    assert (str(broken.status), whole.return_value) == ("FAILED", "whole")
    assert broken.errors[0].exception_class_path == f"builtins.{kind}"
    assert sentence in broken.errors[0].traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = broken.return_value


@pytest.mark.parametrize("name", UNKEEPABLE)
def test_the_same_value_is_refused_as_an_argument_and_stores_nothing(name):
    value, kind, sentence = UNKEEPABLE[name]

    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)) as refusal:
        echo.enqueue(value)

    assert refusal.type.__name__ == kind
    assert not Job.objects.exists()


DECORATORS = ["django.tasks", "django_tasks"]


@pytest.mark.parametrize("contract", DECORATORS)
def test_a_task_that_another_decorator_declared_is_run(contract):
    module = pytest.importorskip(contract)
    declared = module.task(priority=5)(by_another_decorator)
    result = declared.enqueue(20, b=1)

    run_jobs()

    assert declared.get_result(result.id).return_value == 21
    assert result.task.priority == 5


def by_another_decorator(a, b):
    return a + b


@pytest.mark.parametrize(
    ("use_tz", "moment", "is_taken"),
    [
        (True, datetime(2031, 1, 1), False),
        (True, datetime(2031, 1, 1, tzinfo=UTC), True),
        (False, datetime(2031, 1, 1), True),
        (False, datetime(2031, 1, 1, tzinfo=UTC), True),
    ],
)
def test_a_moment_has_a_zone_where_the_project_has_them(settings, use_tz, moment, is_taken):
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Kathmandu"

    if not is_taken:
        with pytest.raises(compat.InvalidTask, match="run_after must be an aware datetime"):
            add.using(run_after=moment)
        return
    result = add.using(run_after=moment).enqueue(1)

    kathmandu = timedelta(0) if moment.tzinfo else timedelta(hours=5, minutes=45)
    due = Job.objects.get(pk=result.id).due_at
    assert due == moment.replace(tzinfo=UTC) - kathmandu


@task
def fail_with_its_own_error():
    kind = type("Local", (Exception,), {"__module__": "no.such.module"})
    raise kind("told all the same")


def test_an_error_whose_class_is_gone_keeps_its_name_and_its_traceback():
    result = fail_with_its_own_error.enqueue()

    run_jobs()
    result.refresh()

    assert result.errors[0].exception_class_path == "no.such.module.Local"
    assert "told all the same" in result.errors[0].traceback
    with pytest.raises(ImportError):
        _ = result.errors[0].exception_class


class Body:
    @classmethod
    def of_class(cls, a):
        return a

    def method(self, a):
        return a


def local():
    def inner():
        pass

    return inner


@pytest.mark.parametrize("function", [local(), Body.of_class, Body().method])
def test_a_function_that_no_path_leads_to_is_refused(function):
    with pytest.raises(compat.InvalidTask, match="must be defined at a module level"):
        task(function)


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("view", ["enqueue", "aenqueue"])
def test_a_result_can_be_looked_at_in_another_request(client, view):
    enqueued = client.get(f"/{view}/").json()
    run_jobs()

    assert client.get(f"/result/{enqueued['id']}/").json() == {"status": "SUCCESSFUL", "value": 41}
    assert client.get("/result/123/").status_code == 404


def enqueue_in_a_view(request):
    return JsonResponse({"id": add.enqueue(40, b=1).id})


async def aenqueue_in_a_view(request):
    return JsonResponse({"id": (await add.aenqueue(40, b=1)).id})


async def look_in_a_view(request, id):
    try:
        result = await backend.aget_result(id)
    except compat.TaskResultDoesNotExist:
        raise Http404 from None
    return JsonResponse({"status": result.status, "value": result.return_value})


urlpatterns = [
    path("enqueue/", enqueue_in_a_view),
    path("aenqueue/", aenqueue_in_a_view),
    path("result/<id>/", look_in_a_view),
]
