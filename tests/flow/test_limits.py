"""Limits: so many hold a slot and no more, so many begin in a time and no more."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from django_once import sql
from django_once.models import Gate, Job
from django_once.models.gate.admit import admit, admit_waiting, forget_gates
from django_once.models.job.again import retry
from django_once.models.job.cancel import cancel
from django_once.models.job.expire import sweep
from django_once.models.job.ready import promote, seconds_to_next_due
from django_once.models.job.settle import settle
from django_once.models.worker import declare_dead
from django_once.sql.gates import GateStatements
from django_once.sql.values import Lane
from django_once.testing import moved_clock, run_jobs
from tests.flow.tasks import of_tenant, one_of_three, twice_a_minute
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    failure,
    given_back,
    in_threads,
    row,
    store,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def settle_and_admit(*outcomes):
    gates = {row(outcome.id).gate for outcome in outcomes}
    settle(DATABASE, outcomes)
    return admit(DATABASE, "default", gates)


def holders():
    return Job.objects.filter(gate__isnull=False, position__isnull=False).count()


def test_no_more_than_the_limit_get_a_slot():
    for number in range(10):
        one_of_three.enqueue(number)

    promote(DATABASE)

    assert [row(one.id).kwargs for one in claim(a_worker())] == ["{}"] * 3
    assert holders() == 3
    assert Job.objects.filter(blocked_by="limit").count() == 7


def test_an_end_lets_the_longest_waiting_in_and_nobody_else():
    ids = [one_of_three.enqueue(number).id for number in range(6)]
    promote(DATABASE)
    worker = a_worker()
    first, second, _ = claim(worker)

    assert settle_and_admit(success(first), failure(second)) == 2

    assert [str(one.id) for one in claim(worker)] == ids[3:5]


def test_the_more_urgent_is_let_in_first():
    for number in range(4):
        one_of_three.enqueue(number)
    urgent = one_of_three.using(priority=50).enqueue(9)
    promote(DATABASE)

    assert urgent.id in {str(one.id) for one in claim(a_worker())}


def test_each_key_has_slots_of_its_own():
    of_tenant.enqueue_many([((number % 5,), {"number": number}) for number in range(50)])

    promote(DATABASE)

    claimed = Counter(one.gate for one in claim(a_worker()))
    assert claimed == {f"limit:tenant:{tenant}": 2 for tenant in range(5)}


def test_what_is_given_back_keeps_no_slot():
    for number in range(4):
        one_of_three.enqueue(number)
    promote(DATABASE)
    attempts = claim(a_worker())

    settle(DATABASE, [given_back(one) for one in attempts])

    assert holders() == 0
    promote(DATABASE)
    assert holders() == 3


def test_a_retry_waits_at_the_gate_again():
    one_of_three.enqueue()
    promote(DATABASE)
    (attempt,) = claim(a_worker())
    settle(DATABASE, [another_try(attempt, delay=60.0)])
    for number in range(3):
        one_of_three.enqueue(number)
    promote(DATABASE)

    with moved_clock("61s"):
        promote(DATABASE)

    assert row(attempt.id).blocked_by == "limit"
    assert holders() == 3


def test_the_slots_of_a_dead_worker_are_kept_until_it_is_swept():
    for number in range(6):
        one_of_three.enqueue(number)
    promote(DATABASE)
    worker = a_worker()
    claim(worker)

    declare_dead(DATABASE, worker.id)
    assert admit(DATABASE, "default", ["limit:three"]) == 0
    sweep(DATABASE)
    promote(DATABASE)

    assert len(claim(a_worker())) == 3


def test_cancelling_gives_the_slot_to_the_next_at_once():
    ids = [one_of_three.enqueue(number).id for number in range(5)]
    promote(DATABASE)

    cancel(DATABASE, [row(ids[1]).pk])

    assert row(ids[3]).position is not None
    assert holders() == 3


def test_a_cancel_that_is_rolled_back_gives_no_slot_away():
    ids = [one_of_three.enqueue(number).id for number in range(5)]
    promote(DATABASE)

    with transaction.atomic():
        cancel(DATABASE, [row(ids[1]).pk])
        transaction.set_rollback(True)

    assert row(ids[1]).position is not None
    assert holders() == 3


def test_a_slot_that_nobody_passed_on_is_found_by_a_sweep():
    for number in range(4):
        one_of_three.enqueue(number)
    promote(DATABASE)
    held = Job.objects.filter(position__isnull=False).first()
    Job.objects.filter(pk=held.pk).delete()

    assert admit_waiting(DATABASE, "default") == (1, "")
    assert holders() == 3


def test_a_person_retries_through_the_gate_as_well():
    job = one_of_three.enqueue()
    promote(DATABASE)
    settle(DATABASE, [failure(one) for one in claim(a_worker())])

    retry(DATABASE, [row(job.id).pk])

    assert row(job.id).position is None
    promote(DATABASE)
    assert holders() == 1


def test_eight_who_admit_and_settle_at_once_never_exceed_a_limit():
    one_of_three.enqueue_many([((number,), {}) for number in range(60)])
    promote(DATABASE)
    seen = []

    def work():
        worker, ended = a_worker(), 0
        for _ in range(400):
            attempts = claim(worker, 2)
            seen.append(Job.objects.filter(gate="limit:three", status="RUNNING").count())
            settle(DATABASE, [success(one) for one in attempts])
            admit(DATABASE, "default", ["limit:three"])
            ended += len(attempts)
            if not Job.objects.filter(status="READY").exists():
                break
        return ended

    assert sum(in_threads(*[work] * 8, timeout=120)) == 60
    assert max(seen) <= 3


def test_two_who_admit_at_once_give_each_slot_once():
    for _ in range(10):
        Job.objects.all().delete()
        Gate.objects.all().delete()
        one_of_three.enqueue_many([((number,), {}) for number in range(10)])

        in_threads(*[lambda: promote(DATABASE)] * 4)
        admit(DATABASE, "default", ["limit:three"])

        assert holders() == 3


def test_many_who_admit_all_the_time_see_what_the_others_have_admitted():
    one_of_three.enqueue_many([((number,), {}) for number in range(400)])
    promote(DATABASE)
    seen = []
    until = time.monotonic() + 2

    def admit_on():
        while time.monotonic() < until:
            admit(DATABASE, "default", ["limit:three"])

    def end_one_after_the_other():
        while time.monotonic() < until:
            held = Job.objects.filter(gate="limit:three", position__isnull=False)
            ids = list(held.values_list("pk", flat=True))
            seen.append(len(ids))
            cancel(DATABASE, ids[:1])

    in_threads(*[admit_on] * 7, end_one_after_the_other)

    assert max(seen) <= 3
    assert len(seen) > 1


def test_a_limit_joins_the_callers_transaction():
    with transaction.atomic():
        one_of_three.enqueue()
        transaction.set_rollback(True)

    assert not Job.objects.exists()


def test_scheduled_jobs_hold_no_slot():
    for _ in range(5):
        one_of_three.using(run_after=timedelta(hours=1)).enqueue()
    one_of_three.enqueue()

    promote(DATABASE)

    assert holders() == 1
    with moved_clock("2h"):
        promote(DATABASE)
        assert holders() == 3


def test_a_rate_lets_one_begin_in_each_interval():
    for number in range(5):
        twice_a_minute.enqueue(number)

    promote(DATABASE)

    assert holders() == 1
    assert seconds_to_next_due(DATABASE) == pytest.approx(2, abs=0.5)
    with moved_clock("2.1s"):
        promote(DATABASE)
        assert holders() == 2
        promote(DATABASE)
        assert holders() == 2


def test_a_rate_is_kept_within_two_in_a_hundred_although_whoever_admits_comes_late():
    twice_a_minute.enqueue_many([((number,), {}) for number in range(400)])
    worker, began = a_worker(), 0
    since = time.monotonic()
    with moved_clock() as clock:
        for step in range(400):
            promote(DATABASE)
            attempts = claim(worker)
            settle(DATABASE, [success(one) for one in attempts])
            began += len(attempts)
            clock.advance(1.0 + step % 7 / 10)
        seconds = clock.moved.total_seconds() + time.monotonic() - since

    assert began == pytest.approx(seconds / 2, rel=0.02)


def test_a_pause_saves_up_no_more_than_the_burst():
    twice_a_minute.enqueue()
    promote(DATABASE)
    with moved_clock("1h"):
        for number in range(5):
            twice_a_minute.enqueue(number)
        promote(DATABASE)

        assert holders() == 2


def test_a_limit_full_of_waiting_jobs_delays_no_other():
    one_of_three.enqueue_many([((number,), {}) for number in range(2_000)])
    promote(DATABASE, 5_000)
    other = store()

    attempts = claim(a_worker(), 10)

    assert other in {one.id for one in attempts}
    assert len(attempts) == 4


def test_run_jobs_runs_all_that_a_limit_lets_through():
    of_tenant.enqueue_many([((number % 2,), {"number": number}) for number in range(10)])

    assert run_jobs() == 10


def test_gates_that_nobody_uses_any_more_are_forgotten_and_begin_anew():
    for tenant in range(5):
        of_tenant.enqueue(tenant)
    twice_a_minute.enqueue()
    assert run_jobs() == 6
    of_tenant.using(run_after=timedelta(days=1)).enqueue(3)

    assert forget_gates(DATABASE, "default", 100) == 4
    with moved_clock("2h"):
        assert forget_gates(DATABASE, "default", 100) == 1
    assert set(Gate.objects.values_list("name", flat=True)) == {"limit:tenant:3"}
    of_tenant.enqueue(1)
    assert run_jobs() == 1


def test_a_hundred_thousand_who_wait_are_walked_by_nobody():
    """Scaled: what a claim and a settle read does not grow with those who wait."""
    one_of_three.enqueue_many([((number,), {}) for number in range(3_000)])
    while promote(DATABASE, 5_000):
        continue
    waiting = GateStatements(sql.on(DATABASE), "default")

    assert len(waiting.waiting({"limit:three": 2})) == 2
    assert waiting.with_waiting("", 10) == ["limit:three"]
    assert sql.on(DATABASE).lanes_between("default", []) == [Lane("default", 0)]
    assert len(claim(a_worker(), 100)) == 3
    assert sql.on(DATABASE).seconds_to_next_due() is None
