"""A series moves one generation at a time, and only its present job may name the next."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from django_once import sql
from django_once.clock import Now
from django_once.models import Job, Worker
from django_once.models.job.again import retry
from django_once.models.job.cancel import cancel
from django_once.models.job.expire import expire_dead, sweep
from django_once.models.series.add import QUEUE_ONE
from django_once.models.series.seed import admit_forgotten, seed
from django_once.models.series.settle import name_next, settle_in_series
from django_once.sql.values import Outcome
from django_once.testing import moved_clock
from tests.jobs import DATABASE, a_worker, claim, row
from tests.series.moves import (
    KEY,
    add,
    claimed,
    fail,
    give_back,
    replace,
    series,
    stop,
    succeed,
    the_waiting,
    try_again,
    waiting,
    wish,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_job_of_a_key_is_its_first_generation():
    placed = add()

    assert (placed.disposition, placed.generation) == ("added", 1)
    assert (series().job, series().generation) == (placed.job, 1)
    assert row(placed.job).generation == 1


def test_adding_does_nothing_while_one_waits_or_runs():
    first = add()
    while_waiting = add()
    attempt = claimed(first.job)
    while_running = add()

    succeed(attempt)
    after = add()

    assert (while_waiting.disposition, while_waiting.job) == ("waiting", first.job)
    assert (while_running.disposition, while_running.job) == ("running", first.job)
    assert (after.disposition, after.generation) == ("added", 2)


def test_a_replacement_ends_what_waits():
    old = add()
    new = replace(args="[2]")

    assert (new.disposition, new.generation) == ("replaced", 2)
    assert (row(old.job).status, row(old.job).reason) == (Job.FAILED, "superseded")
    assert the_waiting().args == "[2]"


@pytest.mark.parametrize("last", ["A", "B"])
def test_a_late_run_does_not_overwrite_the_schedule_of_its_replacement(last):
    a = claimed(add(every=300.0).job)
    b = claimed(replace(every=300.0).job)

    for name in ("B", "A") if last == "A" else ("A", "B"):
        assert succeed(b, after=5.0) if name == "B" else succeed(a, after=3600.0)

    c = the_waiting()
    assert c.generation == 3
    assert abs(c.due_at - row(b.id).finished_at - timedelta(seconds=5)) < timedelta(seconds=1)
    assert {row(a.id).status, row(b.id).status} == {Job.SUCCESSFUL}


@pytest.mark.parametrize("end", [succeed, fail, try_again, give_back])
def test_whatever_becomes_of_a_superseded_run_it_gives_way(end):
    a = claimed(add(every=300.0, max_attempts=5).job)
    b = replace(every=300.0)

    end(a)

    assert [job.id for job in waiting()] == [b.job]
    assert row(a.id).status == (Job.SUCCESSFUL if end is succeed else Job.FAILED)
    assert row(a.id).reason == ("" if end is succeed else "superseded")


@pytest.mark.parametrize("end", [succeed, fail])
def test_each_end_names_the_next_on_the_grid(end):
    first = add(every=10.0)
    began = row(first.job).enqueued_at

    with moved_clock("25s"):
        end(claimed(first.job))

    assert the_waiting().due_at == began + timedelta(seconds=30)
    assert (the_waiting().run_after, the_waiting().position) == (the_waiting().due_at, None)
    assert (the_waiting().every, the_waiting().generation) == (10.0, 2)


def test_a_try_that_comes_back_is_the_same_generation():
    attempt = claimed(add(every=10.0, max_attempts=3).job)

    try_again(attempt)

    assert the_waiting().id == attempt.id
    assert series().generation == 1


def test_a_body_may_stop_its_series_and_adding_goes_on_counting():
    succeed(claimed(add(every=10.0).job), stops=True)
    assert waiting() == []
    assert series().cancelled_at is not None

    again = add(every=10.0)

    assert (again.disposition, again.generation) == ("added", 3)
    assert series().cancelled_at is None


def test_stopping_ends_what_waits_and_asks_what_runs():
    running = claimed(add(every=10.0).job)
    assert stop() == 1
    assert row(running.id).cancel_requested_at is not None
    waits = add()

    assert stop() == 2
    succeed(running)

    assert (row(waits.job).status, row(waits.job).reason) == (Job.FAILED, "cancelled")
    assert waiting() == []


def test_a_replacement_may_wait_for_the_run_it_replaces():
    running = claimed(add().job)
    one, two = replace(QUEUE_ONE), replace(QUEUE_ONE)
    assert claim(a_worker()) == []
    assert row(one.job).reason == "superseded"
    assert row(running.id).cancel_requested_at is None

    succeed(running)

    (attempt,) = claim(a_worker())
    assert attempt.id == two.job


def test_what_waits_for_a_predecessor_that_is_gone_is_let_go_by_the_sweep():
    claimed(add().job)
    replace(QUEUE_ONE)
    assert admit_forgotten(DATABASE, "default") == 0

    Job.objects.filter(status=Job.RUNNING).delete()

    assert admit_forgotten(DATABASE, "default") == 1
    assert len(claim(a_worker())) == 1


def test_seeding_leaves_the_healthy_and_the_stopped_alone():
    keys = ("new", "waits", "runs", "ended", "stopped")
    jobs = [wish(key=key, every=60.0) for key in keys]
    for key in keys[1:]:
        add(key=key)
    claim(a_worker())
    succeed_under("ended")
    add(key="waits")
    stop("stopped")

    seeded = seed(DATABASE, jobs)

    assert [job.key for job in seeded] == ["new", "ended"]
    assert seed(DATABASE, jobs) == []


def succeed_under(key: str) -> None:
    job = Job.objects.get(key=key)
    outcome = {"id": job.id, "claim": job.claim, "status": "SUCCESSFUL", "return_value": "1"}
    assert settle_in_series(DATABASE, [Outcome(**outcome, ran=0.0, key=KEY)]) == set()


def test_many_attempts_of_different_series_end_in_one_go():
    for n in range(30):
        add(key=f"k{n}", every=10.0)
    outcomes = [
        Outcome(id=one.id, claim=one.claim, status="SUCCESSFUL", return_value="1", ran=0.0, key="k")
        for one in claim(a_worker())
    ]

    assert settle_in_series(DATABASE, outcomes) == set()
    assert settle_in_series(DATABASE, outcomes) == {outcome.id for outcome in outcomes}

    ready = Job.objects.filter(status=Job.READY)
    assert sorted(ready.values_list("key", flat=True)) == sorted(f"k{n}" for n in range(30))
    assert set(ready.values_list("generation", flat=True)) == {2}


def test_the_generation_outlives_the_jobs():
    succeed(claimed(add().job))
    Job.objects.all().delete()

    assert add().generation == 2


def test_a_person_who_cancels_the_present_job_ends_its_series():
    waits = add(every=10.0)

    assert cancel(DATABASE, [waits.job]).ended == 1

    assert series().cancelled_at is not None
    assert add(every=10.0).generation == 3


def test_a_person_cannot_bring_back_what_was_replaced():
    old = add()
    new = replace()
    fail(claimed(new.job))

    assert retry(DATABASE, [old.job, new.job]) == 1
    assert the_waiting().id == new.job


def test_a_death_too_many_names_the_next():
    attempt = claimed(add(every=10.0, max_deaths=0).job)
    holder = row(attempt.id).worker

    (swept,) = expire_dead(DATABASE, holder, [(attempt.id, attempt.claim)], "was killed")

    assert (swept.status, swept.reason) == (Job.FAILED, "died")
    assert the_waiting().generation == 2


def test_a_sweep_takes_several_jobs_of_one_key():
    first = claimed(add(every=10.0).job)
    second = claimed(replace(every=10.0).job)
    Worker.objects.update(lost_at=Now())

    swept = sweep(DATABASE)

    assert {job.id for job in swept} == {first.id, second.id}
    assert row(first.id).reason == "superseded"
    assert the_waiting().id == second.id


def test_a_success_that_stands_in_an_open_transaction_names_the_next_with_its_commit():
    attempt = claimed(add(every=10.0, delivery="exactly_once").job)
    statements = sql.on(DATABASE)

    with transaction.atomic():
        mark = statements.begin_success(attempt.id, attempt.claim, 60.0)
        assert statements.verify_success(attempt.id, attempt.claim, mark, "1", 0.1)
        name_next(DATABASE, attempt.id, None)

    assert the_waiting().generation == 2
