"""`once schedules` and `once verify`: what people see, and what the exit status says."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_once.models import Schedule, TaskExecution
from django_once.scheduling.editing import enable
from django_once.scheduling.running import backfill
from django_once.testing import moved_clock
from tests.schedules.rows import a_schedule, again, fire_all, jobs, now, records

pytestmark = [pytest.mark.engine, pytest.mark.django_db(databases=["default", "other"])]


def once(*words):
    """Return the exit status and what was written."""
    out = StringIO()
    try:
        call_command("once", *words, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        return ended.code, out.getvalue()
    except CommandError as refused:
        return refused.returncode, str(refused)
    return 0, out.getvalue()


def told(*words):
    status, text = once(*words, "--json")
    return status, json.loads(text)


def test_a_list_says_what_is_due_when_and_what_is_wrong():
    a_schedule("good", due=30, cron="0 2 * * *", timezone="Europe/Paris")
    a_schedule("odd", timezone="Mars/Olympus", due=-5)
    fire_all()

    status, text = once("schedules")
    _, listed = told("schedules")

    assert status == 1
    assert "At 02:00 every day (Europe/Paris)" in text
    assert "odd: timezone must be a name" in text
    assert {one["name"]: one["state"] for one in listed["schedules"]} == {
        "good": "active", "odd": "broken",
    }  # fmt: skip


def test_without_schedules_it_says_how_to_declare_one():
    assert once("schedules") == (0, "There is no schedule. Declare one with @scheduled_task.\n")


def test_a_preview_shows_instants_walls_and_clock_changes():
    words = ["--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--count", "400"]

    status, text = once("schedules", "preview", *words)
    _, moments = told("schedules", "preview", *words)

    assert status == 0
    assert text.startswith("At 02:30 every day (Europe/Berlin)")
    assert "after a gap" in text
    assert "first pass" in text
    assert len(moments["moments"]) == 400
    assert set(moments["moments"][0]) == {"utc", "wall", "clock", "fires_at"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["preview", "--cron", "0 0 31 2 *"], "names nothing"),
        (["preview"], "either cron="),
        (["preview", "--every", "1h", "--count", "0"], "from 1 to 10000"),
        (["preview", "gone"], "There is no schedule 'gone'"),
        (["run"], "needs the name"),
        (["run", "gone"], "There is no schedule 'gone'"),
        (["backfill", "s"], "needs --from"),
        (["backfill", "s", "--from", "yesterday"], "is no moment"),
        (["backfill", "s", "--from", "1h", "--rate", "fast"], "as in 30/m"),
        (["backfill", "s", "--from", "1h", "--rate", "0/m"], "above zero"),
        (["pause", "s", "--until", "2020-01-01"], "ends in the future"),
    ],
)
def test_what_cannot_be_meant_ends_with_two_and_a_sentence(words, sentence):
    a_schedule(due=30)

    status, text = once("schedules", *words, "--yes")

    assert status == 2
    assert sentence in text


def test_a_run_now_is_begun_and_its_record_is_told():
    schedule = a_schedule(due=30)

    status, answer = told("schedules", "run", "s")

    assert status == 0
    assert str(TaskExecution.objects.get(schedule=schedule).pk) == answer["record"]


def test_a_backfill_shows_first_and_runs_when_it_is_told():
    a_schedule(due=-540, catch_up=3600.0)
    fire_all()

    _, shown = told("schedules", "backfill", "s", "--from", "1h", "--dry-run")
    assert (len(shown["moments"]), len(jobs())) == (9, 1)
    status, done = told("schedules", "backfill", "s", "--from", "1h", "--yes")

    assert (status, len(done["moments"]), len(jobs())) == (0, 9, 10)


def test_a_schedule_is_paused_for_a_while_and_resumed():
    schedule = a_schedule(due=30)

    once("schedules", "pause", "s", "--reason", "bank holiday", "--until", "2h")
    paused = again(schedule)
    once("schedules", "resume", "s")

    assert paused.pause_reason == "bank holiday"
    assert timedelta(hours=1) < paused.paused_until - now() < timedelta(hours=3)
    assert again(schedule).paused_at is None


def verified(*words):
    status, answer = told("verify", *words)
    return status, answer["schedules"][0]


def test_books_that_balance_end_with_zero():
    schedule = a_schedule(due=-190)
    fire_all()

    status, audit = verified("--since", "1h")

    assert (status, audit["expected"], audit["fired"]) == (0, 4, 1)
    assert audit["skipped"] == {"coalesced": 3}
    assert (audit["missing"], audit["doubled"], audit["unexpected"]) == ([], [], [])
    assert once("verify")[1].endswith("was left out for a reason.\n")
    assert records(schedule)


def test_a_record_that_vanished_is_a_missing_moment():
    a_schedule(due=-190)
    fire_all()
    TaskExecution.objects.order_by("due_at").first().delete()

    status, audit = verified()

    assert (status, len(audit["missing"])) == (1, 1)


def test_a_record_of_no_moment_and_a_job_in_two_records_are_found():
    schedule = a_schedule(due=-190)
    fire_all()
    run = TaskExecution.objects.get(status="PENDING")
    TaskExecution.objects.create(schedule=schedule, due_at=now(-100), job=run.job)

    status, audit = verified()

    assert status == 1
    assert len(audit["unexpected"]) == 1
    assert len(audit["doubled"]) == 2


def test_what_nobody_fires_is_missing_after_a_minute():
    a_schedule(due=-5)
    assert verified()[0] == 0

    with moved_clock("70s"):
        status, audit = verified()

    assert (status, len(audit["missing"])) == (1, 1)


def test_a_disabled_schedule_owes_nothing_and_a_pause_is_a_reason():
    a_schedule("off", due=-300, enabled=False)
    assert once("verify")[0] == 0
    Schedule.objects.all().delete()
    a_schedule("paused", due=-300, paused_at=now(-600))
    fire_all()

    status, audit = verified()

    assert (status, audit["skipped"]) == (0, {"paused": 6})


def test_the_audit_says_where_its_evidence_begins():
    schedule = a_schedule(due=-190)
    fire_all()
    first = TaskExecution.objects.order_by("due_at").first()
    Schedule.objects.filter(pk=schedule.pk).update(evidence_from=first.due_at)
    first.delete()

    status, audit = verified("--since", "7d")

    assert (status, audit["expected"]) == (0, 3)
    assert audit["evidence_from"].startswith(f"{first.due_at:%Y-%m-%dT%H:%M:%S}")


def test_a_record_from_before_the_period_stands_for_moments_in_it():
    schedule = a_schedule(due=-40_000, every=3600.0, enabled=False)
    enable("default", schedule.pk)

    status, audit = verified("--since", "5h")

    assert (status, audit["missing"], audit["unexpected"]) == (0, [], [])
    assert (audit["expected"], audit["skipped"]) == (5, {"disabled": 5})


def test_a_moment_that_stood_for_many_and_runs_after_all_goes_on_standing_for_them():
    schedule = a_schedule(due=-40_000, every=3600.0, enabled=False)
    enable("default", schedule.pk)
    first = schedule.next_due_at
    backfill("default", schedule.pk, first, first + timedelta(minutes=61))

    status, audit = verified("--since", "24h")

    assert (status, audit["missing"], audit["expected"], audit["fired"]) == (0, [], 12, 2)
    assert sum(audit["skipped"].values()) == 10


def test_what_is_coalesced_by_thousands_still_balances():
    a_schedule(due=-90_000, every=30.0)
    fire_all()

    status, audit = verified("--since", "7d")

    assert (status, audit["missing"]) == (0, [])
    assert audit["expected"] > 3_000
    assert sum(audit["skipped"].values()) + audit["fired"] == audit["expected"]
