"""Sentence 4, statement by statement: the guards, and what two who meet find."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from django_once import sql
from django_once.models import Schedule, TaskExecution
from django_once.models.schedule.move import AlreadyFired, move
from django_once.sql import schedules
from django_once.sql.schedules import Move, Record
from tests.races.meeting import meet
from tests.schedules.rows import DATABASE, a_schedule, again, now, records

pytestmark = [pytest.mark.engine, pytest.mark.races, pytest.mark.django_db(transaction=True)]

MINUTE = timedelta(minutes=1)


def a_move(schedule, **said):
    known = {
        "schedule": schedule.pk, "version": 0, "seen": schedule.next_due_at,
        "next_due_at": schedule.next_due_at + MINUTE, "fires_at": schedule.next_due_at + MINUTE,
        "watermark": schedule.next_due_at, "fired": 1,
    }  # fmt: skip
    return Move(**{**known, **said})


def a_record(schedule, **said):
    return Record(id=uuid4(), schedule=schedule.pk, due_at=schedule.next_due_at, **said)


def moved(*moves):
    return schedules.move(sql.on(DATABASE), moves)


def recorded(*rows):
    return schedules.record(sql.on(DATABASE), rows)


def test_a_schedule_moves_from_where_it_was_seen_and_from_nowhere_else():
    schedule = a_schedule()

    assert moved(a_move(schedule, seen=now(5))) == 0
    assert moved(a_move(schedule, seen=None)) == 0
    assert moved(a_move(schedule, version=7)) == 0
    assert moved(a_move(schedule)) == 1
    assert moved(a_move(schedule)) == 0

    assert again(schedule).next_due_at == schedule.next_due_at + MINUTE
    assert again(schedule).fired == 1


def test_a_schedule_without_a_moment_is_planned_once():
    schedule = a_schedule()
    Schedule.objects.filter(pk=schedule.pk).update(next_due_at=None)

    assert moved(a_move(schedule, seen=None)) == 1
    assert moved(a_move(schedule, seen=None)) == 0


def test_what_was_disabled_meanwhile_does_not_move():
    schedule = a_schedule(enabled=False)

    assert moved(a_move(schedule)) == 0


def test_a_watermark_never_goes_back():
    schedule = a_schedule()
    Schedule.objects.filter(pk=schedule.pk).update(watermark=schedule.next_due_at + MINUTE)

    moved(a_move(schedule))

    assert again(schedule).watermark == schedule.next_due_at + MINUTE


def test_a_moment_is_recorded_once_and_the_others_of_a_batch_are():
    one, other = a_schedule("one"), a_schedule("other")

    assert recorded(a_record(one)) == 1
    assert recorded(a_record(one), a_record(other)) == 1

    assert TaskExecution.objects.count() == 2


def test_two_who_move_one_schedule_find_that_one_was_first():
    schedule = a_schedule()

    def fire():
        try:
            move(DATABASE, [a_move(schedule)], [a_record(schedule)])
        except AlreadyFired:
            return "late"
        return "first"

    assert meet(fire, fire) == ("first", "late")
    assert records(schedule) == [("PENDING", "")]
    assert again(schedule).fired == 1


def test_who_comes_after_a_firing_that_was_rolled_back_is_first():
    schedule = a_schedule()

    def fire():
        move(DATABASE, [a_move(schedule)], [a_record(schedule)])
        return "first"

    assert meet(fire, fire, first_commits=False) == ("first", "first")
    assert records(schedule) == [("PENDING", "")]


def test_two_who_record_one_moment_find_that_one_was_first():
    schedule = a_schedule()

    assert meet(lambda: recorded(a_record(schedule)), lambda: recorded(a_record(schedule))) == (
        1,
        0,
    )
    assert TaskExecution.objects.count() == 1
