"""Ageing: in queues that say so, who waits long gets a higher priority, and nobody starves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once import conf, identity
from django_once.models import Job
from django_once.models.job.age import BATCH, lift
from django_once.models.job.claim import Walk
from django_once.models.job.ready import promote
from django_once.testing import moved_clock
from tests.flow.tasks import one_of_three, shared
from tests.jobs import DATABASE, a_worker, claim, in_threads, row, store

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def places_of_today(monkeypatch):
    """Draw places from now on: on SQLite they never go back, also behind a clock that was moved."""
    monkeypatch.setattr(identity, "_last_position", 0)


def lifted(queue="default"):
    return lift(DATABASE, "default", queue, MINUTE)


def test_who_has_waited_long_gets_a_higher_priority_once_in_each_time():
    job = store(priority=-5)

    assert lifted() == 0
    with moved_clock("61s") as clock:
        assert (lifted(), row(job).priority) == (1, 5)
        assert lifted() == 0
        clock.advance("61s")
        assert (lifted(), row(job).priority) == (1, 15)


def test_nobody_is_lifted_above_the_highest_priority_and_there_the_oldest_is_first():
    old = store(priority=95)
    with moved_clock("61s") as clock:
        young = store(priority=100)
        clock.advance("1s")
        assert lifted() == 1
        late = store(priority=100)

        assert [one.id for one in claim(a_worker())] == [young, old, late]
        clock.advance("1h")
        assert lifted() == 0


def test_a_flood_of_urgent_jobs_keeps_nobody_waiting_for_ever():
    patient = store(priority=0)
    worker, waited = a_worker(), 0
    with moved_clock() as clock:
        while row(patient).status == "READY" and waited < 50:
            for _ in range(3):
                store(priority=30)
            clock.advance("20s")
            lifted()
            claim(worker, 2)
            waited += 1

    # Four lifts in twelve turns, and the urgent that stood at the top before it.
    assert waited < 50


def test_a_walk_meets_the_lifted_without_beginning_anew():
    worker = a_worker()
    walk = Walk(DATABASE, worker)
    low = store(priority=0)
    for _ in range(3):
        store(priority=10)
    assert len(walk.claim(2)) == 2

    with moved_clock("61s"):
        assert lifted() == 2
        store(priority=20)

        claimed = [one.id for one in walk.claim(10)]

    assert low in claimed
    assert len(claimed) == 3


def test_other_queues_and_what_cannot_run_are_left_alone():
    mail = store(queue="mail")
    later = store(run_after=timedelta(hours=1))
    for number in range(4):
        one_of_three.enqueue(number)
    shared.enqueue(1)
    promote(DATABASE)

    with moved_clock("61s"):
        assert lifted() == 3

    assert (row(mail).priority, row(later).priority) == (0, 0)
    assert Job.objects.get(blocked_by="limit").priority == 0
    assert Job.objects.get(fair_key__isnull=False).priority == 0


def test_the_old_keep_their_order_and_many_are_lifted_in_batches():
    jobs = [store() for _ in range(12)]
    with moved_clock("61s"):
        assert lifted() == 12

        assert [one.id for one in claim(a_worker())] == jobs
    assert BATCH >= 100


def test_four_who_lift_at_once_lift_each_once():
    for _ in range(40):
        store()
    with moved_clock("61s"):
        assert sum(in_threads(*[lifted] * 4)) == 40

    assert set(Job.objects.values_list("priority", flat=True)) == {10}


def test_the_option_says_it_of_each_queue():
    read = conf.read({"AGEING": {"default": "5m", "mail": 90}})

    assert read.problems == ()
    assert read.ageing == {"default": timedelta(minutes=5), "mail": timedelta(seconds=90)}
    assert conf.read({}).ageing == {}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("5m", "must say of queues"),
        ({"default": "soon"}, "must be a timedelta"),
        ({"default": 0}, "must be at least 1 second"),
        ({"a,b": "5m"}, "A queue's name has no comma"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_finding(said, sentence):
    (problem,) = conf.read({"AGEING": said}).problems

    assert sentence in problem.sentence
