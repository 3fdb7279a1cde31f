"""`expect=`: silence is told, once, when no run succeeded in the time that it had."""

from __future__ import annotations

import pytest

from django_once.models.execution.end import complete_ended, overdue
from django_once.processes.scheduler import Scheduler
from django_once.schedules import schedule_overdue
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
from tests.schedules.rows import DATABASE, a_schedule, again, fire_all

pytestmark = [pytest.mark.engine, pytest.mark.django_db]


@pytest.fixture
def heard():
    told = []

    def listen(sender, **said):
        told.append((said["schedule"], said["task"]))

    schedule_overdue.connect(listen)
    yield told
    schedule_overdue.disconnect(listen)


def test_a_run_that_does_not_succeed_in_time_is_told_once(heard, caplog):
    schedule = a_schedule(task=tasks.fail.module_path, args="[]", expect=600.0, every=86400.0)
    fire_all()
    run_jobs()
    loop = Scheduler(DATABASE)

    with moved_clock("9m"):
        loop._look_after(0)
        assert heard == []
    with moved_clock("11m"):
        loop._look_after(0)
        loop._look_after(0)

    assert heard == [("s", tasks.fail.module_path)]
    assert "schedule.overdue schedule=s" in caplog.text
    assert again(schedule).succeeded_at is None


def test_a_success_in_time_is_not_told():
    a_schedule(expect=600.0, every=86400.0)
    fire_all()
    run_jobs()
    complete_ended(DATABASE)

    with moved_clock("11m"):
        assert overdue(DATABASE) == []


def test_a_moment_that_nobody_could_run_is_missed_too():
    a_schedule(expect=600.0, every=86400.0, args="[]")
    fire_all()

    with moved_clock("11m"):
        assert len(overdue(DATABASE)) == 1


def test_what_is_paused_is_not_expected():
    schedule = a_schedule(due=30, expect=600.0)
    from django_once.scheduling import editing

    editing.pause(DATABASE, schedule.pk)

    with moved_clock("20m"):
        fire_all()
        assert overdue(DATABASE) == []
