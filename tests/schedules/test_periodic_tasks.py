"""The names of django-periodic-tasks, and the verbs that programs call by a schedule's name."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_once import schedules
from django_once.contrib import periodic_tasks
from django_once.contrib.periodic_tasks.management.commands import run_scheduler
from django_once.definitions import timetable
from django_once.errors import InvalidOption
from django_once.models import Schedule
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
from tests.schedules.rows import again, jobs, records, to_the_next_minute

pytestmark = [pytest.mark.engine, pytest.mark.django_db(databases=["default", "other"])]


@pytest.fixture(autouse=True)
def empty_timetable(monkeypatch):
    monkeypatch.setattr(timetable, "_declared", {})


def row(name="mine"):
    return Schedule.objects.get(name=name)


def test_a_schedule_is_declared_as_there(settings):
    settings.TIME_ZONE = "Asia/Kathmandu"

    returned = periodic_tasks.scheduled_task(cron="0 2 * * *", args=[1])(tasks.add)

    (declared,) = timetable.declared().values()
    assert returned is tasks.add
    assert (declared.name, declared.timezone) == (tasks.add.module_path, "UTC")


def test_six_fields_are_refused_since_they_mean_something_else_here():
    with pytest.raises(InvalidOption, match="write them in front"):
        periodic_tasks.scheduled_task(cron="0 2 * * * 30")


def test_their_cron_functions_answer():
    base = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert periodic_tasks.compute_next_run_at("0 2 * * *", base_time=base).day == 2
    assert periodic_tasks.validate_cron_expression("*/5 * * * *")
    assert not periodic_tasks.validate_cron_expression("0 0 31 2 *")
    with pytest.raises(ValueError, match="Invalid timezone: .*Mars"):
        periodic_tasks.compute_next_run_at("0 2 * * *", "Mars")


def test_their_command_takes_an_interval():
    with pytest.raises(CommandError, match="seconds above 0, got 0.0"):
        call_command(run_scheduler.Command(), interval=0.0, stderr=StringIO())


def test_what_is_declared_fires_when_somebody_calls():
    periodic_tasks.scheduled_task(cron="* * * * *", args=[1, 2], name="mine")(tasks.add)
    assert schedules.fire_due() == 0

    with moved_clock(to_the_next_minute()):
        assert schedules.fire_due() == 1
        assert run_jobs() == 1
        schedules.fire_due()

    assert jobs() == [[1, 2]]
    assert records(row()) == [("COMPLETED", "")]


def test_a_program_adds_a_schedule_and_steers_it_by_its_name():
    schedules.add(tasks.add, name="mine", every="1h", args=[1], queue_name="mail")
    with pytest.raises(InvalidOption, match="a schedule called 'mine' already"):
        schedules.add(tasks.add, name="mine", every="1h", args=[1])
    with pytest.raises(InvalidOption, match="does not take"):
        schedules.add(tasks.add, name="other", every="1h")

    schedules.pause("mine", "bank holiday")
    assert row().pause_reason == "bank holiday"
    schedules.resume("mine")
    schedules.disable("mine")
    assert (again(row()).paused_at, again(row()).enabled) == (None, False)
    schedules.enable("mine")
    schedules.run_now("mine")

    assert jobs() == [[1]]
    moment = row().rule_since
    assert schedules.backfill("mine", moment.replace(microsecond=0), moment, dry_run=True) == ()
    with pytest.raises(InvalidOption, match="There is no schedule 'gone'"):
        schedules.pause("gone")
