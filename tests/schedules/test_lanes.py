"""Code and operators: a deploy changes what the code says, and nothing that a person did."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once import scheduled_task
from django_once.definitions import timetable
from django_once.errors import InvalidOption
from django_once.models import Schedule, TaskExecution
from django_once.scheduling import editing, syncing
from django_once.testing import moved_clock
from tests.app import tasks
from tests.jobs import in_threads
from tests.schedules.rows import (
    DATABASE,
    a_schedule,
    again,
    fire_all,
    jobs,
    moments,
    now,
    records,
    to_the_next_minute,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def empty_timetable(monkeypatch):
    monkeypatch.setattr(timetable, "_declared", {})


def declare(name="nightly", **said):
    timetable.forget(name)
    scheduled_task(**{"cron": "0 2 * * *", "name": name, "args": [1], **said})(tasks.add)


def deployed(**said):
    declare(**said)
    assert syncing.sync(DATABASE) == []
    return Schedule.objects.get(name="nightly")


def test_a_declaration_becomes_a_row_with_its_next_moment():
    row = deployed(timezone="Europe/Paris")

    assert (row.source, row.cron, row.timezone) == ("code", "0 2 * * *", "Europe/Paris")
    assert row.next_due_at > now()
    assert row.owner == "tests"


def test_a_deploy_of_the_same_words_changes_nothing():
    before = deployed()

    after = deployed()

    assert (after.version, after.next_due_at) == (before.version, before.next_due_at)


def test_a_deploy_keeps_the_pause_and_the_disabling_of_operators():
    row = deployed()
    editing.pause(DATABASE, row.pk, "bank holiday")
    editing.disable(DATABASE, row.pk)

    after = deployed(cron="0 3 * * *")

    assert (after.cron, after.enabled, after.pause_reason) == ("0 3 * * *", False, "bank holiday")
    assert after.paused_at is not None


def test_a_deploy_of_other_words_that_are_no_rule_keeps_the_due_moment():
    before = deployed()

    after = deployed(args=[7], queue_name="mail")

    assert (after.args, after.queue) == ("[7]", "mail")
    assert after.next_due_at == before.next_due_at


def test_a_deploy_of_another_rule_first_fires_what_was_due():
    row = deployed(cron="* * * * *")

    with moved_clock(to_the_next_minute()):
        after = deployed(cron="0 3 * * *")

    assert len(jobs()) == 1
    assert moments(row) == [row.next_due_at]
    assert after.next_due_at > row.next_due_at
    assert after.next_due_at.minute == 0


def test_a_row_of_an_operator_is_never_taken_over():
    row = a_schedule("nightly")
    declare()

    assert syncing.sync(DATABASE) == ["nightly"]

    assert (again(row).source, again(row).every) == ("database", row.every)


def test_what_another_service_declares_is_neither_edited_nor_stopped(monkeypatch):
    row = deployed()
    monkeypatch.setattr(syncing, "owner", lambda: "another")
    declare(cron="0 3 * * *")
    timetable.forget("theirs")

    assert syncing.sync(DATABASE) == ["nightly"]

    assert (again(row).cron, again(row).enabled) == ("0 2 * * *", True)


def test_what_no_code_declares_any_more_is_fired_by_nobody_and_stays():
    deployed(cron="* * * * *")
    timetable.forget("nightly")
    syncing.sync(DATABASE)

    with moved_clock(to_the_next_minute()):
        fire_all()
        assert jobs() == []
        deployed(cron="* * * * *")
        fire_all()

    assert len(jobs()) == 1
    assert Schedule.objects.get().enabled


@pytest.mark.django_db(transaction=True)
def test_two_that_start_at_once_make_one_row():
    declare()

    in_threads(*[lambda: syncing.sync(DATABASE)] * 4)

    assert Schedule.objects.count() == 1


def test_an_edit_names_another_next_moment_at_once():
    schedule = a_schedule(due=50)

    editing.change(DATABASE, schedule.pk, every=3600.0)

    after = again(schedule)
    assert after.next_due_at == schedule.starts_at
    editing.change(DATABASE, schedule.pk, cron="0 0 1 1 *", every=None, starts_at=None)
    assert (again(schedule).next_due_at.month, again(schedule).next_due_at.day) == (1, 1)
    assert again(schedule).fires_at == again(schedule).next_due_at


def test_an_edit_that_cannot_be_meant_changes_nothing():
    schedule = a_schedule(due=-5)

    with pytest.raises(InvalidOption, match="Mars"):
        editing.change(DATABASE, schedule.pk, timezone="Mars")

    assert again(schedule).timezone == "UTC"
    assert (jobs(), records(schedule)) == ([], [])


def test_a_pause_fires_what_was_due_and_holds_what_comes():
    schedule = a_schedule(due=-5)

    editing.pause(DATABASE, schedule.pk, "bank holiday", until=now(150))
    with moved_clock("125s"):
        fire_all()
    with moved_clock("240s"):
        fire_all()

    assert records(schedule) == [
        ("PENDING", ""), ("SKIPPED", "paused"), ("SKIPPED", "paused"), ("SKIPPED", "coalesced"),
        ("SKIPPED", "overlap"),
    ]  # fmt: skip


def test_a_pause_that_has_ended_is_refused_and_a_resumed_schedule_runs_again():
    schedule = a_schedule(due=30)
    with pytest.raises(InvalidOption, match="ends in the future"):
        editing.pause(DATABASE, schedule.pk, until=now(-5))
    editing.pause(DATABASE, schedule.pk)

    with moved_clock("40s"):
        editing.resume(DATABASE, schedule.pk)
    with moved_clock("100s"):
        fire_all()

    assert records(schedule) == [("SKIPPED", "paused"), ("PENDING", "")]


def test_what_fell_due_while_disabled_has_one_record_and_does_not_run():
    schedule = a_schedule(due=30)
    editing.disable(DATABASE, schedule.pk)

    with moved_clock("10m"):
        fire_all()
        editing.enable(DATABASE, schedule.pk)
        fire_all()

    record = TaskExecution.objects.get()
    assert (record.status, record.reason) == ("SKIPPED", "disabled")
    assert record.through > record.due_at
    assert again(schedule).next_due_at > now(590)
    assert jobs() == []


def test_a_schedule_that_was_deleted_leaves_its_records():
    schedule = a_schedule()
    fire_all()

    schedule.delete()

    assert TaskExecution.objects.get().schedule is None
    with pytest.raises(editing.UnknownSchedule):
        editing.pause(DATABASE, schedule.pk)


def test_an_operators_schedule_is_planned_when_it_is_added():
    id = editing.add(DATABASE, name="mine", task=tasks.add.module_path, every=60.0, args="[1]")

    row = Schedule.objects.get(pk=id)
    assert row.source == "database"
    assert now() < row.next_due_at <= now() + timedelta(seconds=60)
