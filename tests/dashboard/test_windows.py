"""Lists of jobs: what a filter means, page by page, and along which index."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from django_once import sql
from django_once.dashboard.filters import parse
from django_once.models import Job
from django_once.models.job import look
from django_once.models.job.settle import settle
from django_once.sql import windows
from django_once.sql.windows import Window
from tests.dashboard.people import failed
from tests.jobs import a_worker, claim, claim_one, store, store_many, success

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def meant(text: str, size: int = 100) -> list[UUID]:
    """Return the ids that a filter means, all pages of them."""
    clauses = parse(text, look.now("default")).clauses
    found: list[UUID] = []
    after = None
    while True:
        page = Window(sql.on("default"), ["default"], clauses).page(size, after)
        found += page.ids
        after = page.edge
        if after is None:
            return found


def newest_first(*jobs: UUID) -> list[UUID]:
    return sorted(jobs, reverse=True)


def test_each_state_lists_its_own():
    bad = failed(3)
    ready = store_many(3, queue="mail")
    later = [store(run_after=timedelta(hours=n)) for n in (3, 1, 2)]
    runs = store(queue="low")
    claim(a_worker(), 1, ["low"])

    assert sorted(meant("state:failed", 2)) == sorted(bad)
    assert meant("state:ready", 2) == newest_first(*ready)
    assert meant("state:scheduled", 2) == [later[1], later[2], later[0]]
    assert meant("state:running") == [runs]
    assert meant("state:open", 2) == newest_first(*ready, *later, runs)
    assert meant("", 4) == newest_first(*bad, *ready, *later, runs)


def test_each_word_finds_its_jobs():
    a = store(task="shop.tasks.charge", queue="mail", kwargs='{"order_id":812,"who":"ann"}')
    b = store(task="shop.tasks.recharge", queue="low", kwargs='{"order_id":8123}')
    c = store(task="other.charge", args="[812]", kwargs='{"at": {"order_id": 812}}')

    assert meant("task:charge") == newest_first(a, c)
    assert meant("task:shop.*") == newest_first(a, b)
    assert meant("charge") == newest_first(a, b, c)
    assert meant("queue:mail queue:low") == newest_first(a, b)
    assert meant("-queue:mail") == newest_first(b, c)
    assert meant("-task:charge") == [b]
    assert b not in meant("arg:order_id=812")
    assert meant("arg:who=ann") == [a]
    assert meant(f"id:{b!s}") == [b]
    assert meant(str(a)[:8]) == newest_first(*(x for x in (a, b, c) if str(x)[:8] == str(a)[:8]))
    assert meant("since:1h") == newest_first(a, b, c)
    assert meant("until:1h") == []
    assert meant("attempt:0") == newest_first(a, b, c)
    assert meant("attempt:>0") == []


@pytest.mark.books_may_be_wrong
def test_the_last_error_is_what_counts():
    (bad,) = failed(1)
    entry = {
        "at": "2026-01-01T00:00:00Z", "kind": "raised", "attempt": 1, "worker": "ann",
        "error": "shop.Declined", "traceback": 'he said "error":"builtins.KeyError"',
    }  # fmt: skip
    last = {**entry, "error": "builtins.TimeoutError"}
    Job.objects.filter(pk=bad).update(history=json.dumps([entry, last], separators=(",", ":")))

    assert meant("error:TimeoutError state:failed") == [bad]
    assert meant("error:builtins.TimeoutError") == [bad]
    assert meant("error:Timeout*") == []
    assert meant("error:*Timeout*") == [bad]
    assert meant("error:Declined") == []
    assert meant("error:KeyError") == []


@pytest.mark.parametrize("text", ["%", "_", "!", "'", '"', "\\", ";--", "*%*", "ä"])
def test_no_sign_means_more_than_itself(text):
    odd = store(queue=f"q{text}")
    store(queue="qx")
    said = json.dumps(f"q{text}", ensure_ascii=False)

    assert meant(f"queue:{said}") == [odd]
    assert meant(f"text {said}"[5:]) == []


def test_a_window_ends_and_says_where(monkeypatch):
    monkeypatch.setattr(windows, "WIDTH", 4)
    jobs = [store(queue="mail" if n % 5 == 0 else "low") for n in range(20)]
    clauses = parse("queue:mail", look.now("default")).clauses

    page = Window(sql.on("default"), [], clauses).page(10)

    assert page.edge is not None
    assert page.edge.id == jobs[-4]
    assert meant("queue:mail", 10) == newest_first(*jobs[::5])


def test_jobs_that_ended_in_one_moment_are_all_listed():
    store_many(7)
    settle("default", [success(one) for one in claim(a_worker(), 7)])
    Job.objects.update(finished_at=Job.objects.values_list("finished_at", flat=True)[0])

    found = meant("state:successful", 2)

    assert len(found) == len(set(found)) == 7


def test_many_of_one_state_are_walked_through_a_window(monkeypatch):
    monkeypatch.setattr(windows, "FEW", 3)
    ready = store_many(5)
    store(run_after=timedelta(hours=1))

    assert meant("state:ready", 2) == newest_first(*ready)


def test_a_count_stops_and_says_so():
    store_many(5)
    clauses = parse("state:ready queue:default", look.now("default")).clauses
    window = Window(sql.on("default"), [], clauses)

    assert window.count(100) == (5, False)
    assert window.count(3) == (3, True)


def test_a_page_of_what_ended_follows_its_index():
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL tells its plan so that it can be read here.")
    store()
    settle("default", [success(claim_one())])
    clauses = parse("state:failed", look.now("default")).clauses
    window = Window(sql.on("default"), [], clauses)
    inner, parameters = window._window(None)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {inner}", parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "once_job_failed" in plan
