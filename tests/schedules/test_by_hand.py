"""What a person asks for: a run now, and runs of moments that passed without one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once.errors import InvalidOption
from django_once.models import Job, Schedule, TaskExecution
from django_once.models.execution.end import complete_ended, prune
from django_once.scheduling.running import backfill, run_now
from django_once.testing import moved_clock, run_jobs
from tests.schedules.rows import DATABASE, a_schedule, again, fire_all, jobs, moments, now, records

pytestmark = [pytest.mark.engine, pytest.mark.django_db]


def ten_moments_of_which_one_ran():
    """Return a schedule that ran once, and skipped nine moments before."""
    schedule = a_schedule(due=-540, catch_up=3600.0)
    fire_all()
    assert records(schedule) == [("SKIPPED", "coalesced")] * 9 + [("PENDING", "")]
    return schedule


def test_a_run_by_hand_is_recorded_and_moves_no_moment():
    schedule = a_schedule(due=50, paused_at=now(-10))

    record = run_now(DATABASE, schedule.pk)

    row = TaskExecution.objects.get()
    assert (row.pk, row.kind, row.status) == (record, "manual", "PENDING")
    assert jobs() == [[1, 2]]
    after = again(schedule)
    assert (after.next_due_at, after.fired) == (schedule.next_due_at, 1)


def test_a_run_by_hand_that_is_refused_records_nothing():
    schedule = a_schedule(due=50, args="[]")

    with pytest.raises(InvalidOption, match="missing a required argument"):
        run_now(DATABASE, schedule.pk)

    assert TaskExecution.objects.count() == 0


def test_a_backfill_shows_what_it_would_do_and_does_nothing():
    schedule = ten_moments_of_which_one_ran()

    told = backfill(DATABASE, schedule.pk, now(-600), now(), dry_run=True)

    assert list(told.moments) == moments(schedule)[:9]
    assert told.ran_before == 1
    assert len(jobs()) == 1


def test_a_backfill_runs_what_did_not_run_and_nothing_twice():
    schedule = ten_moments_of_which_one_ran()

    first = backfill(DATABASE, schedule.pk, now(-600), now())
    second = backfill(DATABASE, schedule.pk, now(-600), now())

    assert (len(first.moments), len(second.moments)) == (9, 0)
    assert len(jobs()) == 10
    assert records(schedule) == [("PENDING", "")] * 10
    assert run_jobs() == 10


def test_a_backfill_can_be_spread():
    schedule = ten_moments_of_which_one_ran()

    backfill(DATABASE, schedule.pk, now(-600), now(), per_minute=2)

    waits = sorted(job.due_at - job.enqueued_at for job in Job.objects.all())
    assert waits[-1] == timedelta(seconds=240)
    assert waits[-2] == timedelta(seconds=210)


def test_a_backfill_of_a_schedule_that_is_new_records_what_never_was():
    schedule = a_schedule(due=50)

    told = backfill(DATABASE, schedule.pk, now(-190), now())

    assert (told.moments, jobs()) == ((), [])
    Schedule.objects.filter(pk=schedule.pk).update(starts_at=now(-190))
    told = backfill(DATABASE, schedule.pk, now(-191), now())
    assert (len(told.moments), len(jobs())) == (4, 4)
    assert set(TaskExecution.objects.values_list("kind", flat=True)) == {"backfill"}


@pytest.mark.parametrize(
    ("begin", "end", "sentence"),
    [(-10, -20, "ends after it begins"), (-100, 3600, "reaches until"), (-7200, -60, "deleted up")],
)
def test_a_period_that_nobody_can_answer_for_is_refused(begin, end, sentence):
    schedule = ten_moments_of_which_one_ran()
    Schedule.objects.filter(pk=schedule.pk).update(evidence_from=now(-3600))

    with pytest.raises(InvalidOption, match=sentence):
        backfill(DATABASE, schedule.pk, now(begin), now(end))


def test_old_records_are_deleted_and_the_schedule_knows_up_to_where():
    schedule = ten_moments_of_which_one_ran()
    run_jobs()
    complete_ended(DATABASE)
    kept = moments(schedule)[-1]

    assert prune(DATABASE) == 0
    with moved_clock("25h"):
        assert prune(DATABASE) == 10

    assert records(schedule) == []
    assert again(schedule).evidence_from == kept
    assert again(schedule).watermark == kept


def test_records_are_kept_as_long_as_their_schedule_says():
    week, for_ever = a_schedule("w", retention=7 * 86400.0), a_schedule("e", retention=None)
    day = a_schedule("d")
    fire_all()
    run_jobs()
    complete_ended(DATABASE)

    with moved_clock("2d"):
        prune(DATABASE)
    assert [len(records(one)) for one in (week, for_ever, day)] == [1, 1, 0]
    with moved_clock("8d"):
        prune(DATABASE)
    assert [len(records(one)) for one in (week, for_ever, day)] == [0, 1, 0]


def test_what_is_still_to_run_is_never_deleted():
    schedule = a_schedule()
    fire_all()

    with moved_clock("30d"):
        assert prune(DATABASE) == 0

    assert records(schedule) == [("PENDING", "")]
