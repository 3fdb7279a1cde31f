"""A bulk that is spread over a time: due at equal distances, the first at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once.errors import InvalidOption
from django_once.models import Job
from django_once.testing import moved_clock, run_jobs
from tests.app.tasks import add
from tests.flow.tasks import charge, of_tenant

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def seconds_apart(jobs):
    due = [Job.objects.get(pk=one.id).due_at for one in jobs]
    return [round((moment - due[0]).total_seconds(), 2) for moment in due]


def test_a_bulk_is_due_at_equal_distances_the_first_at_once():
    jobs = add.enqueue_many([((number,), {}) for number in range(5)], spread="10m")

    assert seconds_apart(jobs) == [0, 120, 240, 360, 480]
    assert run_jobs() == 1
    with moved_clock("5m"):
        assert run_jobs() == 2
    with moved_clock("8m1s"):
        assert run_jobs() == 2


@pytest.mark.parametrize("wish", ["timedelta", "moment"])
def test_the_distances_begin_where_the_jobs_were_wished_for(wish):
    hour = timedelta(hours=1)
    begin = add.enqueue(0)
    moment = Job.objects.get(pk=begin.id).enqueued_at + hour
    wished = add.using(run_after=hour if wish == "timedelta" else moment)

    jobs = wished.enqueue_many([((number,), {}) for number in range(4)], spread=60)

    assert seconds_apart(jobs) == [0, 15, 30, 45]
    first = Job.objects.get(pk=jobs[0].id)
    assert abs((first.due_at - moment).total_seconds()) < 30
    assert first.run_after == first.due_at
    assert not Job.objects.exclude(pk=begin.id).exclude(position=None).exists()


def test_limited_jobs_come_to_their_gate_one_by_one():
    jobs = of_tenant.enqueue_many([((1,), {}) for _ in range(4)], spread="4m")

    assert seconds_apart(jobs) == [0, 60, 120, 180]
    assert run_jobs() == 1


def test_unique_jobs_keep_their_place_in_the_spread_whoever_is_there_already():
    charge.enqueue(2)
    jobs = charge.enqueue_many([((number,), {}) for number in range(5)], spread="5m")

    there = {one.id for one in jobs if one.is_new}
    due = sorted(Job.objects.filter(pk__in=there).values_list("due_at", flat=True))

    assert [one.is_new for one in jobs] == [True, True, False, True, True]
    assert timedelta(minutes=2) < due[-1] - due[0] <= timedelta(minutes=4)


@pytest.mark.parametrize("spread", [0, "soon", -1])
def test_a_spread_that_cannot_be_meant_is_refused(spread):
    with pytest.raises(InvalidOption):
        add.enqueue_many([((1,), {})], spread=spread)
    assert not Job.objects.exists()


def test_nothing_is_spread_over_nothing():
    assert len(add.enqueue_many([], spread="1m")) == 0
