"""Shares: a flood delays nobody else, and weights hold."""

from __future__ import annotations

from collections import Counter

import pytest

from django_once import sql
from django_once.models import Job
from django_once.models.gate.admit import admit
from django_once.models.job.ready import promote
from django_once.models.job.settle import settle
from django_once.sql.gates import GateStatements
from tests.flow.tasks import shared, shared_and_limited
from tests.jobs import DATABASE, a_worker, claim, in_threads, success

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def enqueue(task, tenant, count):
    task.enqueue_many([((tenant,), {}) for _ in range(count)])


def promote_all():
    while promote(DATABASE):
        continue


def work(worker, most=40):
    """Claim, end and admit once; return whose jobs these were, in their order."""
    attempts = claim(worker, most)
    keys = [one.gate for one in attempts]
    owners = [Job.objects.get(pk=one.id).fair_key for one in attempts]
    settle(DATABASE, [success(one) for one in attempts])
    admit(DATABASE, "default", set(keys))
    return owners


def test_two_floods_get_three_to_one_by_their_weights():
    enqueue(shared, 2, 900)
    enqueue(shared, 1, 900)
    promote_all()
    worker = a_worker()

    served = Counter(owner for _ in range(20) for owner in work(worker))

    assert sum(served.values()) == 800
    assert served["tenant:1"] / served["tenant:2"] == pytest.approx(3, rel=0.05)


def test_who_comes_with_one_job_is_next_although_floods_wait():
    enqueue(shared, 2, 1_500)
    enqueue(shared, 1, 1_500)
    promote_all()
    worker = a_worker()
    for _ in range(3):
        work(worker)

    for _ in range(5):
        enqueue(shared, 3, 1)
        promote_all()
        assert "tenant:3" in work(worker, 10)


def test_a_key_that_was_idle_saves_up_nothing():
    enqueue(shared, 2, 200)
    promote_all()
    worker = a_worker()
    for _ in range(5):
        work(worker)
    enqueue(shared, 2, 200)
    enqueue(shared, 4, 200)
    promote_all()

    served = Counter(owner for _ in range(4) for owner in work(worker))

    assert served["tenant:2"] == pytest.approx(served["tenant:4"], abs=2)


def test_no_more_of_a_flood_than_a_window_is_admitted():
    enqueue(shared, 2, 2_000)
    promote_all()

    assert Job.objects.exclude(position=None).count() == 500
    assert Job.objects.filter(blocked_by="fair").count() == 1_500


def test_of_one_key_the_order_is_kept():
    ids = shared.enqueue_many([((5,), {"number": number}) for number in range(100)]).ids
    promote_all()

    assert [str(one.id) for one in claim(a_worker())] == ids


def test_all_of_many_keys_are_served_although_four_work_at_once():
    for tenant in range(30):
        enqueue(shared, tenant, 20)
    promote_all()

    def until_none():
        worker, ended = a_worker(), 0
        while Job.objects.filter(status="READY").exists():
            attempts = claim(worker, 20)
            settle(DATABASE, [success(one) for one in attempts])
            admit(DATABASE, "default", {one.gate for one in attempts})
            ended += len(attempts)
            if not attempts:
                gates = GateStatements(sql.on(DATABASE), "default")
                admit(DATABASE, "default", gates.with_waiting("", 100))
        return ended

    assert sum(in_threads(*[until_none] * 4, timeout=120)) == 600


def test_a_limit_is_shared_by_those_who_wait_for_it():
    enqueue(shared_and_limited, 1, 50)
    enqueue(shared_and_limited, 2, 50)
    promote_all()
    worker = a_worker()

    attempts = claim(worker)

    assert len(attempts) == 4
    assert Job.objects.exclude(position=None).count() == 4
    settle(DATABASE, [success(one) for one in attempts])
    assert admit(DATABASE, "default", ["limit:mill"]) == 4
