"""What a project asks of its own transactions does not change what becomes of a due moment."""

from __future__ import annotations

import pytest
from django.db import connection, connections

from django_once.models import Job, Schedule, TaskExecution
from django_once.models.execution.end import complete_ended
from django_once.scheduling import editing
from django_once.scheduling.firing import fire_due
from django_once.testing import run_jobs
from tests.jobs import in_threads
from tests.races.test_isolation import level as level
from tests.schedules.rows import DATABASE, a_schedule, again, records

pytestmark = [
    pytest.mark.engine,
    pytest.mark.races,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="These are PostgreSQL's levels."),
]


def fire():
    fired = 0
    while (told := fire_due(DATABASE, most=10)).looked_at:
        fired += told.fired
    connections[DATABASE].close()
    return fired


def test_schedulers_that_meet_raise_nothing_and_fire_each_once():
    for number in range(120):
        a_schedule(f"s{number}")

    fired = in_threads(*[fire] * 3)

    assert sum(fired) == 120
    assert (Job.objects.count(), TaskExecution.objects.count()) == (120, 120)


def test_an_edit_that_meets_a_scheduler_waits_and_is_no_error():
    schedule = a_schedule()

    def edit():
        editing.pause(DATABASE, schedule.pk, "bank holiday")

    for _ in range(10):
        in_threads(fire, edit, lambda: editing.resume(DATABASE, schedule.pk))
        Schedule.objects.update(next_due_at=schedule.next_due_at, fires_at=schedule.next_due_at)
        TaskExecution.objects.all().delete()

    assert again(schedule).enabled


def test_schedulers_that_complete_what_ended_raise_nothing():
    schedules = [a_schedule(f"s{number}") for number in range(40)]
    fire()
    run_jobs()

    done = in_threads(*[lambda: complete_ended(DATABASE)] * 4)

    assert sum(done) == 40
    assert {tuple(records(one)) for one in schedules} == {(("COMPLETED", ""),)}
