"""Taking jobs: who gets which, in what order, and who gets none."""

from __future__ import annotations

import itertools
import time
from datetime import timedelta

import pytest
from django.db import connection

from django_once import clock, identity, sql
from django_once.models import Job
from django_once.models.job.claim import Walk
from django_once.models.job.settle import settle
from django_once.models.worker import expire, stop
from django_once.sql.values import Lane
from django_once.testing import moved_clock
from tests.jobs import (
    DATABASE,
    a_worker,
    claim,
    claim_one,
    given_back,
    row,
    store,
    store_many,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_a_claim_makes_a_job_run_under_a_fence_and_a_nonce():
    job = store(args="[1]", kwargs='{"a":2}', queue="mail", priority=3, max_attempts=2,
                max_deaths=5, delivery="exactly_once", timeout=1.5)  # fmt: skip
    holder = a_worker("ann")

    attempt = claim_one(holder)

    found = row(job)
    for name in ("id", "claim", "task", "args", "kwargs", "queue", "priority", "position",
                 "fence", "attempt", "failures", "max_attempts", "deaths", "max_deaths",
                 "delivery", "timeout", "worker_name"):  # fmt: skip
        assert getattr(attempt, name) == getattr(found, name), name
    assert (found.status, found.fence, found.attempt) == ("RUNNING", 1, 1)
    assert (found.worker, found.worker_name) == (holder.id, "ann")
    assert (attempt.is_suspect, attempt.is_expired, attempt.cancel_requested) == (False,) * 3
    assert attempt.history_length == 2
    assert found.started_at is None


def test_a_job_is_claimed_once():
    store_many(3)

    assert len(claim(a_worker())) == 3
    assert claim(a_worker()) == []


def test_each_claim_has_its_own_nonce_and_a_larger_fence():
    job = store()
    attempts = []
    for _ in range(3):
        attempts.append(claim_one())
        settle(DATABASE, [given_back(attempts[-1])])

    assert [one.fence for one in attempts] == [1, 2, 3]
    assert len({one.claim for one in attempts}) == 3
    assert row(job).attempt == 0


def test_the_first_come_is_the_first_served():
    jobs = store_many(20)

    assert [one.id for one in claim(a_worker(), 7)] == jobs[:7]
    assert [one.id for one in claim(a_worker(), 7)] == jobs[7:14]


def test_the_most_urgent_goes_first_and_equals_in_order():
    priorities = (0, 100, -100, 7, 0, 7, -1, 100, 0)
    jobs = [(store(priority=priority), priority) for priority in priorities]

    claimed = [one.id for one in claim(a_worker())]

    assert claimed == [job for job, _ in sorted(jobs, key=lambda pair: -pair[1])]


def test_a_claim_that_is_too_small_takes_the_most_urgent():
    for priority in range(-5, 6):
        store(priority=priority)

    assert [one.priority for one in claim(a_worker(), 3)] == [5, 4, 3]
    assert [one.priority for one in claim(a_worker(), 3)] == [2, 1, 0]


def test_queues_are_served_in_the_order_they_were_named_and_no_others():
    for queue in ("a", "b", "c"):
        store(queue=queue), store(queue=queue, priority=9)

    taken = claim(a_worker(), queues=("c", "a"))

    assert [(one.queue, one.priority) for one in taken] == [("c", 9), ("c", 0), ("a", 9), ("a", 0)]
    assert [one.queue for one in Walk(DATABASE, a_worker(), ["*"], ["b"]).claim(9)] == []
    assert len(claim(a_worker())) == 2


def test_a_worker_takes_jobs_of_its_backend_only():
    store(backend="other")

    assert claim(a_worker(backend="default")) == []
    assert len(claim(a_worker(backend="other"))) == 1


@pytest.mark.parametrize("gone", ["lost", "stopped", "unknown"])
def test_nothing_is_taken_for_a_worker_that_is_no_more(gone):
    job = store()
    holder = a_worker(lease=timedelta(seconds=-1))
    if gone == "lost":
        assert expire(DATABASE) == [holder.id]
    elif gone == "stopped":
        stop(DATABASE, holder.id)
    else:
        holder = type(holder)(identity.nonce(), "nobody", "default")

    assert claim(holder) == []
    assert row(job).fence == 0


@pytest.mark.parametrize("state", ["running", "successful", "blocked", "later", "failed"])
def test_only_what_is_ready_is_taken(state):
    store(run_after=timedelta(hours=1) if state == "later" else None)
    if state != "later":
        attempt = claim_one()
    if state == "successful":
        settle(DATABASE, [success(attempt)])
    elif state == "blocked":
        settle(DATABASE, [given_back(attempt, blocked_by="limit")])
    elif state == "failed":
        Job.objects.update(status="FAILED", position=None, finished_at="2026-01-01", reason="x",
                           history='[{"at":"","kind":"","attempt":0,"worker":"","error":"",'
                           '"traceback":""}]')  # fmt: skip

    assert claim(a_worker()) == []


def test_an_expired_job_says_so_when_it_is_claimed():
    store(expires=timedelta(minutes=1))
    store(expires=timedelta(minutes=5))
    store()

    with moved_clock("2m"):
        assert [one.is_expired for one in claim(a_worker())] == [True, False, False]


def test_positions_below_the_given_one_are_passed_over():
    store_many(4)
    holder = a_worker()
    first, second = claim(holder, 2)
    statements = sql.on(DATABASE)
    settle(DATABASE, [given_back(second)])
    lane = Lane("default", 0)

    taken = statements.claim(holder, identity.nonce(), [(lane, first.position + 1)], 1)

    assert len(taken) == 1
    assert taken[0].position > first.position


def test_no_more_is_taken_than_asked_over_many_lanes():
    for queue, priority in itertools.product("abcd", range(3)):
        store_many(2, queue=queue, priority=priority)

    counts = [len(claim(a_worker(), 5)) for _ in range(6)]

    assert counts == [5, 5, 5, 5, 4, 0]


def test_a_walk_goes_on_where_it_was():
    jobs = store_many(30)
    walk = Walk(DATABASE, a_worker())

    taken = [one.id for _ in range(10) for one in walk.claim(3)]

    assert taken == jobs
    assert walk.claim(3) == []


def test_a_walk_finds_what_was_put_behind_it_and_lanes_it_did_not_know():
    walk = Walk(DATABASE, a_worker())
    store_many(3)
    assert len(walk.claim(2)) == 2

    urgent, elsewhere = store(priority=50), store(queue="new")

    assert {one.id for one in walk.claim(10)} >= {urgent, elsewhere}


def test_a_job_stored_after_the_clock_went_back_is_found_too():
    walk = Walk(DATABASE, a_worker())
    store_many(3)
    assert len(walk.claim(9)) == 3
    clock.move(timedelta(hours=-1))
    try:
        earlier = store()
        began = time.monotonic()
        while not (found := walk.claim(9)):
            assert time.monotonic() - began < 1, "The walk never came back for it."
    finally:
        clock.move(timedelta(hours=1))

    assert [attempt.id for attempt in found] == [earlier]


def test_nothing_is_awaited_once_the_answer_is_there():
    store()
    walk = Walk(DATABASE, a_worker())

    walk.claim(1)

    assert walk.awaited is None


def test_a_claim_whose_answer_is_lost_stays_awaited():
    store()
    walk = Walk(DATABASE, a_worker())

    def lose(execute, statement, *rest):
        answer = execute(statement, *rest)
        if "UPDATE once_job" in statement:
            raise ConnectionResetError
        return answer

    with pytest.raises(ConnectionResetError), connection.execute_wrapper(lose):
        walk.claim(1)

    assert walk.awaited is not None


ODD_NAMES = (
    "", " ", "a", "a ", "a  ", "a\t", "A", "aa", "a-b", "a_b", "a%b", "%", "_", "ä", "a\u0301",
    "é", "e", "z", "ß", "ss", "日本", "\N{GRINNING FACE}", "\uffff", "'", '"', "\\", "a\\b",
    "a'b", "NULL", "*", "default", "Default", "DEFAULT", "0", "00", "\uff11", "x" * 64,
)  # fmt: skip


def test_names_are_compared_letter_by_letter():
    jobs = {name: store(queue=name) for name in ODD_NAMES}

    for name in sorted(ODD_NAMES, key=hash):
        taken = claim(a_worker(), queues=[name]) if name != "*" else []
        assert [one.id for one in taken] == ([jobs[name]] if name != "*" else []), repr(name)


def test_all_lanes_are_found_whatever_their_names_are():
    for name in ODD_NAMES:
        store(queue=name, priority=len(name) - 30)
    statements = sql.on(DATABASE)
    every = {Lane(name, len(name) - 30) for name in ODD_NAMES}

    assert set(statements.lanes_between("default", [])) == every
    for known in (list(every)[::2], list(every)[1::3], every):
        found = statements.lanes_between("default", known)
        assert len(found) == len(set(found))
        assert set(found) == every - set(known)


def test_two_hundred_and_one_priorities_are_two_hundred_and_one_lanes():
    for priority in range(-100, 101):
        store(priority=priority)
    store(queue="another", priority=100)
    statements = sql.on(DATABASE)

    found = statements.lanes_between("default", [])

    lanes = [Lane("another", 100)] + [Lane("default", p) for p in range(-100, 101)]
    assert sorted(found) == lanes
    assert statements.lanes_between("default", lanes) == []
    assert sorted(statements.lanes_between("default", lanes[::2])) == lanes[1::2]
    taken = claim(a_worker(), 202, queues=("default",))
    assert [one.priority for one in taken] == list(range(100, -101, -1))


def test_a_lane_without_ready_jobs_is_none():
    store(queue="later", run_after=timedelta(hours=1))
    store(queue="taken")
    store(queue="other", backend="other")
    claim(a_worker())

    assert sql.on(DATABASE).lanes_between("default", []) == []
