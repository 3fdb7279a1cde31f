"""`once prune`: what is old goes, what has not ended stays, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models.signals import post_delete

from django_once.models import Job, Worker
from django_once.models.job.prune import prune
from django_once.models.job.settle import settle
from django_once.testing import moved_clock
from tests.jobs import (
    a_worker,
    another_try,
    claim,
    claim_one,
    failure,
    given_back,
    in_threads,
    store,
    store_many,
    success,
)
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def ended(count: int = 1, outcome=success, **said: object) -> list[UUID]:
    jobs = store_many(count, **said)
    settle("default", [outcome(one) for one in claim(a_worker(), count)])
    return jobs


def left() -> set[UUID]:
    return set(Job.objects.values_list("pk", flat=True))


def test_each_status_is_kept_as_long_as_its_retention_says():
    (good,), (bad,) = ended(), ended(outcome=failure)

    with moved_clock("6d"):
        assert once("prune", "--json").json["jobs"] == 0
        assert left() == {good, bad}
    with moved_clock("8d"):
        assert once("prune", "--json").json["jobs"] == 1
        assert left() == {bad}
    with moved_clock("31d"):
        assert once("prune", "--json").json["jobs"] == 1
    assert left() == set()


def test_what_has_not_ended_is_never_pruned_however_old():
    ended(3)
    waits, runs, later, blocked = store(), store(priority=9), store(), store(priority=5)
    claim_one()
    settle("default", [given_back(claim_one(), blocked_by="unknown_task")])
    settle("default", [another_try(claim_one(), delay=60.0)])

    with moved_clock("3000d"):
        answer = once("prune", "--older-than", "0", "--yes")

    assert answer.code == 0
    assert left() == {waits, runs, later, blocked}


@pytest.mark.parametrize(("status", "survivor"), [("failed", 0), ("SUCCESSFUL", 1)])
def test_one_status_may_be_meant(status, survivor):
    jobs = [*ended(), *ended(outcome=failure)]

    with moved_clock("1h"):
        once("prune", "--older-than", "1m", "--status", status, "--yes")

    assert left() == {jobs[survivor]}


@pytest.mark.parametrize("status", ["RUNNING", "ready", "odd"])
def test_a_status_that_is_no_end_is_refused(status):
    answer = once("prune", "--older-than", "0", "--status", status)

    assert "invalid choice" in answer.err


def test_one_queue_may_be_meant_and_one_backend():
    (mail,), (low,) = ended(queue="mail"), ended(queue="low")

    with moved_clock("1h"):
        once("prune", "--older-than", "1m", "--queue", "mail", "--yes")
        once("prune", "--older-than", "1m", "--backend", "other", "--yes")

    assert left() == {low}
    assert mail not in left()


def test_only_what_retention_does_not_say_is_asked_for():
    ended(2)

    with moved_clock("1h"):
        refused = once("prune", "--older-than", "1m", answer="n\n")
        unanswered = once("prune", "--older-than", "1m")
        assert (refused.code, refused.out) == (
            1, "Delete 2 jobs for ever? [y/N] Nothing was changed.\n",
        )  # fmt: skip
        assert unanswered.code == 2
        assert len(left()) == 2
        agreed = once("prune", "--older-than", "1m", answer="yes\n")
    assert (agreed.code, agreed.lines) == (0, ["Delete 2 jobs for ever? [y/N] Deleted 2 jobs."])


def test_a_dry_run_counts_and_deletes_nothing():
    ended(2)

    with moved_clock("1h"):
        assert once("prune", "--older-than", "1m", "--dry-run").out == "Would delete 2 jobs.\n"
        shown = once("prune", "--older-than", "1m", "--dry-run", "--json").json
    assert shown == {"dry_run": True, "jobs": 2, "workers": 0}
    assert len(left()) == 2


def test_a_program_reads_these_keys():
    ended(2)

    with moved_clock("1h"):
        answer = once("prune", "--older-than", "1m", "--yes", "--json")

    assert answer.json == {"dry_run": False, "jobs": 2, "workers": 0}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--batch-size", "0"], "--batch-size must be from 1 to 10000, got 0."),
        (["--batch-size", "10001"], "--batch-size must be from 1 to 10000, got 10001."),
        (["--older-than", "old"], "--older-than must be a timedelta, seconds, or text"),
        (["--older-than", "-1"], "--older-than must not be negative"),
        (["--backend", "nobody"], "TASKS has no backend 'nobody'."),
    ],
)
def test_what_cannot_be_meant_is_refused(words, sentence):
    answer = once("prune", *words)

    assert (answer.code, answer.out, sentence in answer.err) == (2, "", True)


def test_many_jobs_go_in_batches_each_a_transaction_of_its_own():
    ended(25)
    sizes: list[int] = []

    def look(execute, sql, parameters, many, context):
        is_of_jobs = sql.startswith("DELETE") and "once_job" in sql
        before = Job.objects.count() if is_of_jobs else 0
        answer = execute(sql, parameters, many, context)
        if before:
            sizes.append(before - Job.objects.count())
        return answer

    with moved_clock("1h"), connection.execute_wrapper(look):
        once("prune", "--older-than", "1m", "--batch-size", "10", "--yes")

    assert sizes == [10, 10, 5]


def test_who_hangs_on_deletes_is_told_of_each_job():
    jobs = ended(3)
    told = []

    def hear(instance, **_):
        told.append(instance.pk)

    post_delete.connect(hear, sender=Job)
    try:
        with moved_clock("1h"):
            assert once("prune", "--older-than", "1m", "--yes", "--json").json["jobs"] == 3
    finally:
        post_delete.disconnect(hear, sender=Job)

    assert (sorted(told), left()) == (jobs, set())


def test_workers_that_are_gone_go_after_a_day_and_the_living_stay():
    gone, alive = a_worker("ann"), a_worker("bob", lease=timedelta(days=9))
    from django_once.models.worker import stop

    stop("default", gone.id)

    assert once("prune").out == "Deleted 0 jobs.\n"
    with moved_clock("25h"):
        assert once("prune").out == "Deleted 0 jobs and 1 row of a worker that is gone.\n"
    assert list(Worker.objects.values_list("pk", flat=True)) == [alive.id]


def test_rows_that_somebody_has_locked_are_passed_over_and_nobody_waits():
    if connection.vendor == "sqlite":
        pytest.skip("On SQLite a transaction that writes holds the whole database.")
    jobs = ended(6)
    holds, pruned = threading.Event(), threading.Event()

    def somebody():
        with transaction.atomic():
            list(Job.objects.select_for_update().filter(pk__in=jobs[:2]))
            holds.set()
            assert pruned.wait(30)

    def pruner():
        assert holds.wait(30)
        try:
            return prune("default", None, {"SUCCESSFUL": timedelta(0)})
        finally:
            pruned.set()

    with moved_clock("1h"):
        _, count = in_threads(somebody, pruner)

    assert (count, left()) == (4, set(jobs[:2]))


def test_work_goes_on_while_thousands_are_pruned():
    for _ in range(4):
        ended(500)
    old = len(left())
    running = threading.Event()
    slowest = 0.0
    worked = 0

    def pruner():
        assert running.wait(30)
        deleted = 0
        # Only what ended before, whatever is done meanwhile.
        while batch := prune("default", None, {"SUCCESSFUL": timedelta(minutes=30)}, 100):
            deleted += batch
        running.clear()
        return deleted

    def worker():
        nonlocal slowest, worked
        holder = a_worker(lease=timedelta(days=1))
        running.set()
        while running.is_set():
            began = time.perf_counter()
            store()
            (attempt,) = claim(holder, 1)
            settle("default", [success(attempt)])
            slowest = max(slowest, time.perf_counter() - began)
            worked += 1

    with moved_clock("1h"):
        deleted, _ = in_threads(pruner, worker)

    assert deleted == old
    assert worked
    # Nobody waited for the whole of it, only for a batch at most.
    assert slowest < 5
    assert len(left()) == worked
