"""Sentence 4: a schedule fires once for each due moment, and what did not run says why."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from django_once.models import Job, Schedule, TaskExecution
from django_once.models.execution.end import complete_ended
from django_once.scheduling.firing import begin_next_in_turn, fire_due
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
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

MINUTE = timedelta(minutes=1)


def test_a_due_moment_becomes_one_record_and_one_job_and_the_next_is_named():
    schedule = a_schedule()

    assert fire_all() == 1

    after = again(schedule)
    assert jobs() == [[1, 2]]
    assert records(schedule) == [("PENDING", "")]
    assert moments(schedule) == [schedule.next_due_at]
    assert TaskExecution.objects.get().job == Job.objects.get().pk
    assert schedule.next_due_at < after.next_due_at <= schedule.next_due_at + MINUTE
    assert (after.fired, after.skipped, after.watermark) == (1, 0, schedule.next_due_at)
    assert after.fires_at == after.next_due_at


def test_what_fired_does_not_fire_again():
    a_schedule()

    assert (fire_all(), fire_all()) == (1, 0)


def test_a_restart_between_due_moment_and_tick_loses_nothing():
    schedule = a_schedule(due=-5)

    with moved_clock("40s"):
        fire_all()

    assert moments(schedule)[0] == schedule.next_due_at
    assert len(jobs()) == 1


def test_what_was_missed_has_a_record_each_and_the_last_runs():
    schedule = a_schedule(due=-190)

    fire_all()

    assert records(schedule) == [("SKIPPED", "coalesced")] * 3 + [("PENDING", "")]
    assert (again(schedule).fired, again(schedule).skipped) == (1, 3)


def test_a_firing_that_is_rolled_back_leaves_all_as_it_was():
    schedule = a_schedule()

    with transaction.atomic():
        fire_all()
        transaction.set_rollback(True)

    assert (jobs(), records(schedule)) == ([], [])
    assert again(schedule).next_due_at == schedule.next_due_at
    assert fire_all() == 1


def test_a_moment_that_meets_its_own_run_is_skipped_and_says_so():
    schedule = a_schedule()
    fire_all()

    with moved_clock("1m"):
        fire_all()
        assert records(schedule)[-1] == ("SKIPPED", "overlap")
        run_jobs()
    with moved_clock("2m"):
        fire_all()

    assert [one for one, _ in records(schedule)] == ["PENDING", "SKIPPED", "PENDING"]


def test_runs_that_may_queue_begin_one_after_the_other():
    schedule = a_schedule(overlap="queue_all")
    for minutes in range(3):
        with moved_clock(f"{minutes}m"):
            fire_all()
    assert records(schedule) == [("PENDING", ""), ("PENDING", "queued"), ("PENDING", "queued")]
    assert begin_next_in_turn(DATABASE) == 0

    begun = []
    for _ in range(3):
        run_jobs()
        complete_ended(DATABASE)
        begun.append(begin_next_in_turn(DATABASE))

    assert begun == [1, 1, 0]
    assert records(schedule) == [("COMPLETED", "")] * 3
    assert Job.objects.filter(status=Job.SUCCESSFUL).count() == 3


def test_one_may_queue_and_no_more():
    schedule = a_schedule(overlap="queue_one")
    for minutes in range(3):
        with moved_clock(f"{minutes}m"):
            fire_all()

    assert records(schedule) == [("PENDING", ""), ("PENDING", "queued"), ("SKIPPED", "overlap")]


def test_runs_that_may_overlap_all_begin():
    schedule = a_schedule(overlap="allow")
    for minutes in range(3):
        with moved_clock(f"{minutes}m"):
            fire_all()

    assert records(schedule) == [("PENDING", "")] * 3
    assert len(jobs()) == 3


@pytest.mark.parametrize(
    "broken",
    [
        {"timezone": "Mars/Olympus"}, {"cron": "0 0 31 2 *"}, {"cron": ""}, {"gap": "sideways"},
        {"overlap": "maybe"},
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_keeps_its_moment_and_stops_no_other(broken):
    odd = a_schedule("odd", due=-10, **broken)
    a_schedule("good")

    assert fire_all() == 1

    after = again(odd)
    assert after.problem
    assert (after.next_due_at, records(odd)) == (odd.next_due_at, [])
    assert after.fires_at > now(30)

    Schedule.objects.filter(pk=odd.pk).update(
        timezone="UTC", cron="", every=60.0, gap="", overlap="skip"
    )
    with moved_clock("61s"):
        assert fire_all() >= 1
    assert again(odd).problem == ""
    assert moments(odd)[0] == odd.next_due_at


@pytest.mark.parametrize(
    "refused",
    [
        {"args": "[]"}, {"kwargs": '{"c": 3}'}, {"args": "{"}, {"args": "3"}, {"queue": "nowhere"},
        {"backend": "gone"}, {"priority": 700}, {"backend": "other"},
    ],
)  # fmt: skip
def test_a_call_that_is_refused_is_recorded_with_its_problem_and_stops_no_other(refused):
    odd = a_schedule("odd", due=-10, **refused)
    a_schedule("good")

    assert fire_all() == 1

    assert records(odd) == [("SKIPPED", "refused")]
    assert again(odd).problem
    assert again(odd).next_due_at > now()
    assert jobs() == [[1, 2]]


def test_a_schedule_whose_task_is_unknown_here_is_left_to_those_who_know_it():
    odd = a_schedule("odd", due=-10, task="elsewhere.tasks.gone")
    a_schedule("good")

    told = fire_due(DATABASE)
    rest = fire_due(DATABASE, unknown=told.unknown)

    assert (told.fired, told.unknown) == (1, {"elsewhere.tasks.gone"})
    assert rest.looked_at == 0
    assert records(odd) == []
    assert again(odd).next_due_at == odd.next_due_at


def test_a_row_that_sql_inserted_is_planned_by_the_first_who_looks():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO once_schedule (name, task, cron, args) VALUES (%s, %s, %s, %s)",
            ["bare", tasks.add.module_path, "* * * * *", "[3, 4]"],
        )

    fire_all()
    assert jobs() == []
    with moved_clock(to_the_next_minute()):
        fire_all()

    assert jobs() == [[3, 4]]


def test_a_schedule_that_has_ended_names_no_moment_and_is_looked_at_no_more():
    schedule = a_schedule(ends_at=now(30))

    fire_all()

    after = again(schedule)
    assert (after.next_due_at, after.fires_at) == (None, None)
    assert fire_due(DATABASE).looked_at == 0


def test_jitter_puts_the_firing_off_and_keeps_the_moment():
    schedule = a_schedule(jitter=3600.0, next_due_at=None, cron="0 * * * *", rule_since=now())
    fire_all()
    planned = again(schedule)
    assert planned.next_due_at < planned.fires_at < planned.next_due_at + timedelta(hours=1)

    with moved_clock(planned.fires_at - now() + timedelta(seconds=1)):
        fire_all()

    assert moments(schedule)[0] == planned.next_due_at


def test_a_clock_that_goes_back_fires_nothing_again_and_one_that_leaps_only_misfires():
    schedule = a_schedule()
    with moved_clock("1h"):
        fire_all()
    fired = moments(schedule)

    assert fire_all() == 0
    with moved_clock("62m"):
        fire_all()

    assert len(set(moments(schedule))) == len(moments(schedule)) > len(fired)
    assert again(schedule).watermark == moments(schedule)[-1]


def test_a_record_that_stands_already_is_left_as_it_is():
    schedule = a_schedule()
    TaskExecution.objects.create(schedule=schedule, due_at=schedule.next_due_at, kind="backfill")
    a_schedule("other")

    assert fire_all() == 1

    assert len(jobs()) == 1
    assert again(schedule).next_due_at > schedule.next_due_at


def test_a_run_completes_its_record_when_its_job_has_ended():
    good, bad = a_schedule("good"), a_schedule("bad", task=tasks.fail.module_path, args="[]")
    fire_all()

    run_jobs()
    complete_ended(DATABASE)

    assert records(good) == [("COMPLETED", "")]
    assert records(bad) == [("COMPLETED", "failed")]
    assert again(good).succeeded_at is not None
    assert again(bad).succeeded_at is None


def test_a_job_that_was_deleted_leaves_a_completed_record():
    schedule = a_schedule()
    fire_all()
    Job.objects.all().delete()

    complete_ended(DATABASE)

    assert records(schedule) == [("COMPLETED", "deleted")]


def test_a_paused_schedule_records_what_was_due():
    schedule = a_schedule(due=-100, paused_at=now(-3600))

    fire_all()

    assert set(records(schedule)) == {("SKIPPED", "paused")}
    assert jobs() == []


def test_jobs_of_other_queues_and_priorities_go_where_their_schedules_say():
    a_schedule("a", queue="mail", priority=5)
    a_schedule("b", queue="low", priority=-5)

    fire_all()

    rows = set(Job.objects.values_list("queue", "priority"))
    assert rows == {("mail", 5), ("low", -5)}


def test_a_thousand_schedules_of_one_task_take_few_statements(django_assert_max_num_queries):
    moment = now()
    Schedule.objects.bulk_create(
        Schedule(name=f"{n}", task=tasks.add.module_path, cron="* * * * *", args=f"[{n}]",
                 next_due_at=moment, fires_at=moment)
        for n in range(200)
    )  # fmt: skip

    with django_assert_max_num_queries(20):
        fire_due(DATABASE)

    assert sorted(args[0] for args in jobs()) == list(range(200))
    assert all(isinstance(job, UUID) for job in TaskExecution.objects.values_list("job", flat=True))


@pytest.mark.parametrize("task", [tasks.tell_when_due, tasks.tell_later_when_due])
def test_a_body_is_told_the_moment_it_was_due_for_however_late_it_runs(task):
    schedule = a_schedule(task=task.module_path, args="[]")
    by_hand = task.enqueue()
    with moved_clock("40s"):
        fire_all()
        run_jobs()

    job = TaskExecution.objects.get().job
    assert task.get_backend().get_result(str(job)).return_value == str(schedule.next_due_at)
    by_hand.refresh()
    assert by_hand.return_value == "None"


def test_a_moment_whose_unique_job_is_there_already_says_so():
    schedule = a_schedule(task=tasks.add_one_at_a_time.module_path, overlap="allow")
    fire_all()

    with moved_clock("1m"):
        fire_all()

    assert records(schedule) == [("PENDING", ""), ("SKIPPED", "not_unique")]
    assert len(jobs()) == 1
    assert (again(schedule).fired, again(schedule).skipped) == (1, 1)
