"""`@scheduled_task`: what it refuses while code is loaded, and what it hands on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_once import exactly_once, scheduled_task, task
from django_once.definitions import timetable
from django_once.errors import InvalidOption
from tests.app import tasks


@pytest.fixture(autouse=True)
def empty_timetable(monkeypatch):
    monkeypatch.setattr(timetable, "_declared", {})


def declared():
    (one,) = timetable.declared().values()
    return one


def bill(order_id: int = 0, *, tenant: str = "") -> None:
    """A body of a schedule."""


def test_a_task_is_declared_and_returned_as_it_was():
    returned = scheduled_task(cron="0 2 * * *", args=[1, 2])(tasks.add_later)

    assert returned is tasks.add_later
    with pytest.raises(InvalidOption, match="calls its task with what it does not take"):
        scheduled_task(cron="0 2 * * *", kwargs={"c": 1})(tasks.add)


def test_a_declaration_carries_what_was_said():
    scheduled_task(
        every="90s", name="often", args=[1], kwargs={"b": 2}, queue_name="mail", priority=7,
        overlap="queue_one", misfire="skip", catch_up="10m", jitter="5s", expect="1h",
        starts=datetime(2026, 1, 1, tzinfo=UTC), retention="7d",
    )(tasks.add)  # fmt: skip

    one = declared()
    assert (one.name, one.task) == ("often", tasks.add.module_path)
    assert (one.args, one.kwargs, one.queue, one.priority) == ("[1]", '{"b":2}', "mail", 7)
    assert one.rule.every == timedelta(seconds=90)
    assert (one.policies.overlap, one.policies.misfire) == ("queue_one", "skip")
    assert one.policies.retention == timedelta(days=7)


def test_a_name_is_the_path_of_the_task_and_the_zone_that_of_the_project(settings):
    settings.TIME_ZONE = "Asia/Kathmandu"

    scheduled_task(cron="0 2 * * *")(tasks.echo)

    assert (declared().name, declared().timezone) == (tasks.echo.module_path, "Asia/Kathmandu")


def test_the_order_of_the_decorators_is_told_where_it_is_wrong():
    with pytest.raises(InvalidOption, match=r"@scheduled_task stands above @task.*'bill'"):
        task(scheduled_task(cron="0 2 * * *")(bill))
    with pytest.raises(InvalidOption, match="takes a task, got 7"):
        scheduled_task(cron="0 2 * * *")(7)


def test_exactly_once_may_stand_on_either_side():
    above = scheduled_task(cron="0 2 * * *", name="a")(exactly_once(task(bill)))
    below = exactly_once(scheduled_task(cron="0 2 * * *", name="b")(task(bill)))

    assert set(timetable.declared()) == {"a", "b"}
    assert above.delivery == below.delivery == "exactly_once"


def test_a_name_belongs_to_one_task():
    scheduled_task(cron="0 2 * * *", name="nightly")(tasks.echo)

    with pytest.raises(InvalidOption, match="Two schedules are called 'nightly'"):
        scheduled_task(cron="0 2 * * *", name="nightly")(tasks.fail)
    with pytest.raises(InvalidOption, match="different words"):
        scheduled_task(cron="0 3 * * *", name="nightly")(tasks.echo)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({}, "either cron="),
        ({"cron": "0 0 31 2 *"}, "0 0 31 2"),
        ({"every": 0}, "at least one second"),
        ({"every": timedelta(seconds=-1)}, "must not be negative"),
        ({"cron": "0 2 * * *", "timezone": "Mars"}, "'Mars'"),
        ({"cron": "0 2 * * *", "queue_name": "nowhere"}, "nowhere"),
        ({"cron": "0 2 * * *", "priority": 101}, "priority"),
        ({"cron": "0 2 * * *", "backend": "gone"}, "gone"),
        ({"cron": "0 2 * * *", "args": [1, 2, 3]}, "does not take"),
        ({"cron": "0 2 * * *", "name": ""}, "1 to 255 characters"),
        ({"cron": "0 2 * * *", "name": "n" * 256}, "1 to 255 characters"),
        ({"cron": "0 2 * * *", "name": "a\nb"}, "can be printed"),
        ({"cron": "0 2 * * *", "overlap": "never"}, "overlap must be one of"),
        ({"cron": "0 2 * * *", "expect": -1}, "negative"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_import_with_its_value(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        scheduled_task(**{"args": [1], **said})(tasks.add)
    assert timetable.declared() == {}


def test_arguments_that_json_cannot_keep_are_refused():
    with pytest.raises(TypeError, match="Unsupported type"):
        scheduled_task(cron="0 2 * * *", args=[object()])(tasks.add)
