"""Keys as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_once import perpetual, task
from django_once.compat import InvalidTask, TaskResultStatus, task_backends
from django_once.definitions import registry
from django_once.errors import InvalidOption
from django_once.models import Job, Series
from django_once.processes.seeder import look_after_series
from django_once.testing import moved_clock, run_jobs
from tests.series import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def the_waiting(key: str) -> Job:
    return Job.objects.get(key=key, status=Job.READY)


def test_a_template_is_filled_from_the_arguments_however_they_are_given():
    first, again = tasks.poll.add(7), tasks.poll.add(pool=7, shard="b")

    assert (first.disposition, first.key, first.generation) == ("added", "poll:7", 1)
    assert (again.disposition, again.id) == ("waiting", first.id)
    assert tasks.poll.add(8).disposition == "added"


def test_enqueue_is_add_for_a_task_with_a_key():
    first, again = tasks.poll.enqueue(1), tasks.poll.enqueue(1)

    assert first.id == again.id
    assert again.disposition == "waiting"


def test_a_key_may_be_said_of_one_call():
    seven = tasks.plain.using(key="pool-7")

    first, new = seven.add(7), seven.replace(8)

    assert (new.disposition, new.generation) == ("replaced", 2)
    first.refresh()
    assert first.status == TaskResultStatus.FAILED
    assert seven.get().id == new.id
    assert seven.cancel() == 1
    assert seven.get() is None


def test_async_code_has_the_same_verbs():
    async def play():
        seven = tasks.plain.using(key="seven")
        added = await seven.aadd(1)
        replaced = await seven.areplace(2)
        present = await seven.aget()
        return added, replaced, present, await seven.acancel()

    added, replaced, present, cancelled = async_to_sync(play)()

    assert (added.generation, replaced.generation) == (1, 2)
    assert (present.id, cancelled) == (replaced.id, 1)


def test_a_key_is_as_transactional_as_a_job():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        tasks.poll.add(1)
        raise ZeroDivisionError

    assert not Series.objects.exists()
    assert tasks.poll.add(1).disposition == "added"


def test_a_result_read_later_knows_its_key_and_generation():
    added = tasks.poll.add(1)

    found = tasks.poll.get_result(added.id)

    assert (found.key, found.generation, found.disposition) == ("poll:1", 1, None)


@pytest.mark.parametrize(
    ("say", "seconds", "args"),
    [("", 10, '["a",""]'), ("fail", 10, '["a","fail"]'), ("soon", 1, None), ("with", 1, None)],
)
def test_a_perpetual_task_names_its_next_job(say, seconds, args):
    first = tasks.tick.add("a", say)

    assert run_jobs() == 1

    first.refresh()
    following = the_waiting("tick:a")
    assert following.generation == 2
    began = first.enqueued_at if seconds == 10 else first.finished_at
    late = following.due_at - began - timedelta(seconds=seconds)
    assert abs(late) < (timedelta(0) if seconds == 10 else timedelta(seconds=1)) or not late
    if args:
        assert following.args == args
    if say == "with":
        assert following.args == '["a","stop"]'


@pytest.mark.parametrize("say", ["stop", "cancel"])
def test_a_perpetual_task_may_end(say):
    tasks.tick.add("a", say)

    run_jobs()

    assert not Job.objects.filter(key="tick:a", status=Job.READY).exists()
    assert tasks.tick.add("a").generation == 3


def test_a_chain_goes_on_for_as_long_as_nobody_stops_it():
    tasks.tick.add("a")

    with moved_clock() as clock:
        for _ in range(5):
            run_jobs()
            clock.advance("10s")

    assert the_waiting("tick:a").generation == 6
    first = Job.objects.get(generation=1)
    assert the_waiting("tick:a").due_at == first.enqueued_at + timedelta(seconds=50)


def test_an_exactly_once_run_names_the_next_with_its_commit():
    result = tasks.tick_once.add()

    run_jobs()
    result.refresh()

    assert result.return_value == 1
    assert the_waiting("once").generation == 2


def test_perpetual_stands_above_or_below_task():
    assert tasks.below.perpetual.every == timedelta(minutes=1)
    assert tasks.below.add().key == "tests.series.tasks.below"


def test_an_automatic_series_is_seeded_and_mended_and_left_alone():
    backend = task_backends["default"]
    key = "tests.series.tasks.heartbeat"

    look_after_series(backend)
    first = the_waiting(key)
    look_after_series(backend)
    assert the_waiting(key).id == first.id

    Job.objects.filter(key=key).delete()
    look_after_series(backend)
    assert the_waiting(key).generation == 2

    tasks.heartbeat.cancel()
    look_after_series(backend)
    assert not Job.objects.filter(key=key, status=Job.READY).exists()


def test_who_waits_for_a_replaced_job_waits_for_its_replacement():
    seven = tasks.plain.using(key="seven")
    old = seven.add(1)
    new = seven.replace(2)
    run_jobs()

    ended = old.wait("5s")

    assert (ended.id, ended.return_value) == (new.id, 2)
    assert async_to_sync(old.await_end)("5s").id == new.id


def f(pool: int) -> None: ...


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: task(key="poll:{pol}")(f), "asks for 'pol', which f does not take"),
        (lambda: task(key="")(f), "must be a name of 1 to"),
        (lambda: task(key="k" * 300)(f), "must be a name of 1 to"),
        (lambda: perpetual(every=0)(f), "must be at least 0.01 s"),
        (lambda: perpetual(every="-1s")(f), "must be a timedelta, seconds, or text"),
        (lambda: perpetual(every="1s", automatic=True)(task(f)), "nobody gives it arguments"),
        (lambda: perpetual(every="1s")(7), "takes a task or a function"),
        (lambda: task(perpetual=3)(f), "perpetual is said by a decorator"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(declare, sentence):
    with pytest.raises((InvalidOption, InvalidTask), match=sentence):
        declare()


def test_what_cannot_be_meant_is_refused_where_it_is_called():
    with pytest.raises(InvalidOption, match="has no key: say which"):
        tasks.plain.add(1)
    with pytest.raises(InvalidOption, match="while_running must be one of"):
        tasks.poll.replace(1, while_running="wait")
    with pytest.raises(InvalidTask, match="call add\\(\\) for each"):
        tasks.poll.enqueue_many([((1,), {})])
    with pytest.raises(InvalidTask, match="knows no keys"):
        tasks.plain.using(key="a", backend="dummy").add(1)
    with pytest.raises(InvalidOption, match="there is room for"):
        tasks.poll.add("x" * 300)


def test_a_body_of_no_series_cannot_speak_of_the_next_job():
    result = speak.enqueue()

    run_jobs()
    result.refresh()

    assert "has none: declare it with @perpetual" in result.errors[0].traceback


@task(takes_context=True)
def speak(context):
    context.reschedule(after="5s")


def test_a_key_that_was_said_of_one_call_makes_no_second_task():
    tasks.plain.using(key="a").add(1)
    tasks.plain.using(key="b").add(1)

    assert tasks.plain.module_path not in registry.ambiguous()
