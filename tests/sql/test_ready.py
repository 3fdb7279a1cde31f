"""Becoming ready: what is due, and what was blocked, gets a place; nothing else does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_once import sql
from django_once.models import Job
from django_once.models.job.ready import promote, readmit_known, seconds_to_next_due
from django_once.models.job.settle import settle
from django_once.testing import moved_clock
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    claim_one,
    given_back,
    in_threads,
    row,
    store,
    store_many,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_a_job_gets_its_place_when_its_time_has_come():
    job = store(run_after=timedelta(minutes=1))

    assert promote(DATABASE) == 0
    with moved_clock("61s"):
        assert promote(DATABASE) == 1
        assert promote(DATABASE) == 0
        assert [one.id for one in claim(a_worker())] == [job]


def test_the_longest_due_goes_first():
    jobs = [store(run_after=timedelta(minutes=minutes)) for minutes in (3, 1, 4, 2, 5)]

    with moved_clock("1h"):
        assert promote(DATABASE) == 5
        assert [one.id for one in claim(a_worker())] == [jobs[i] for i in (1, 3, 0, 2, 4)]


def test_what_becomes_due_stands_behind_what_is_ready():
    later, now = store(run_after=timedelta(seconds=30)), store()

    with moved_clock("1m"):
        promote(DATABASE)

    assert [one.id for one in claim(a_worker())] == [now, later]


def test_promoting_goes_in_batches():
    for _ in range(5):
        store(run_after=timedelta(minutes=1))

    with moved_clock("2m"):
        assert [promote(DATABASE, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_is_blocked_running_or_over_is_not_promoted():
    store_many(3)
    one, two, _ = claim(a_worker())
    settle(DATABASE, [given_back(one, blocked_by="limit"), success(two)])

    with moved_clock("1d"):
        assert promote(DATABASE) == 0


def test_a_retry_is_promoted_when_its_delay_is_over():
    job = store(max_attempts=2)
    settle(DATABASE, [another_try(claim_one(), delay=600.0)])

    assert seconds_to_next_due(DATABASE) == pytest.approx(600, abs=5)
    with moved_clock("11m"):
        assert seconds_to_next_due(DATABASE) == pytest.approx(-60, abs=5)
        assert promote(DATABASE) == 1
        assert claim_one().id == job


def test_nothing_waits_in_an_empty_table():
    assert seconds_to_next_due(DATABASE) is None
    store()
    assert seconds_to_next_due(DATABASE) is None


def test_two_who_promote_at_once_place_each_job_once():
    for _ in range(200):
        store(run_after=timedelta(minutes=1))

    def until_none():
        counts = []
        while Job.objects.filter(position=None).exists():
            counts.append(promote(DATABASE, 10))
        return sum(counts)

    with moved_clock("2m"):
        assert sum(in_threads(until_none, until_none)) == 200


def block(*tasks, by="unknown_task"):
    jobs = [store(task=task) for task in tasks]
    settle(DATABASE, [given_back(one, blocked_by=by) for one in claim(a_worker())])
    return jobs


def test_jobs_come_back_when_their_task_is_known():
    one, two, _ = block("app.one", "app.two", "app.three")

    assert readmit_known(DATABASE, ["app.one", "app.two", "app.four"]) == 2
    assert [job.id for job in claim(a_worker())] == [one, two]
    assert readmit_known(DATABASE, ["app.one"]) == 0


def test_what_something_else_blocks_is_not_readmitted():
    (job,) = block("app.one", by="limit")

    assert readmit_known(DATABASE, ["app.one"]) == 0
    assert row(job).blocked_by == "limit"


def test_nothing_is_asked_when_no_task_is_known():
    assert readmit_known(DATABASE, []) == 0


def test_thousands_are_readmitted_in_their_order():
    store_many(30)
    settle(DATABASE, [given_back(one, blocked_by="unknown_task") for one in claim(a_worker())])
    statements = sql.on(DATABASE)

    batches = [statements.readmit("unknown_task", ["tests.add"], 20) for _ in range(3)]
    assert list(map(len, batches)) == [20, 10, 0]
    due = [row(one.id).due_at for one in claim(a_worker())]
    assert due == sorted(due)


def test_rows_that_somebody_holds_are_left_for_the_next_time():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer, and nothing to pass over.")
    jobs = [store(run_after=timedelta(minutes=1)) for _ in range(3)]

    with moved_clock("2m"), transaction.atomic():
        list(Job.objects.select_for_update().filter(pk=jobs[0]))
        (count,) = in_threads(lambda: promote(DATABASE))

    assert count == 2
    assert row(jobs[0]).position is None
