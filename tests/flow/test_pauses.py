"""Pauses: what is paused is not started, costs nothing, and runs in its order afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once.models import Job, Pause
from django_once.models.job.ready import promote
from django_once.models.job.settle import settle
from django_once.models.pause.stop import end_lapsed, let_go_unpaused, pause, pauses, resume
from django_once.processes import ends
from django_once.testing import moved_clock, run_jobs
from tests.app.tasks import add, echo
from tests.flow.tasks import of_tenant, one_of_three
from tests.jobs import DATABASE, a_worker, claim, row

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def stop(kind, name, **said):
    pause(DATABASE, "default", kind, name, **said)


def go_on(kind, name):
    return resume(DATABASE, "default", kind, name)


def test_nothing_of_a_paused_queue_is_claimed_and_all_else_is():
    add.enqueue(1)
    other = add.using(queue_name="mail").enqueue(2)

    stop("queue", "default")

    assert [str(one.id) for one in claim(a_worker())] == [other.id]
    assert go_on("queue", "default")
    assert len(claim(a_worker())) == 1


def test_a_job_of_a_paused_task_goes_back_as_if_nothing_had_been():
    job = add.enqueue(1)
    echo.enqueue(2)
    stop("task", add.module_path, reason="the ledger is being moved", by="ann")

    assert run_jobs() == 1

    stored = row(job.id)
    assert (stored.status, stored.blocked_by, stored.position) == ("READY", "paused", None)
    assert (stored.attempt, stored.history, stored.started_at) == (0, "[]", None)


def test_what_was_paused_runs_after_the_resume_in_its_order():
    add.enqueue_many([((number,), {}) for number in range(20)])
    ids = [str(id) for id in Job.objects.order_by("position").values_list("id", flat=True)]
    stop("task", add.module_path)
    assert run_jobs() == 0

    go_on("task", add.module_path)

    assert [str(one.id) for one in claim(a_worker())] == ids


def test_one_key_is_paused_and_its_neighbours_are_not():
    for tenant in (1, 2):
        of_tenant.enqueue(tenant)
    stop("key", "tenant:1")

    assert run_jobs() == 1

    assert Job.objects.get(status="READY").limit_key == "tenant:1"
    go_on("key", "tenant:1")
    assert run_jobs() == 1


def test_a_paused_job_holds_no_slot():
    for number in range(4):
        one_of_three.enqueue(number)
    promote(DATABASE)
    stop("task", one_of_three.module_path)
    attempts = claim(a_worker())

    settle(DATABASE, [ends.paused(one).outcome for one in attempts])

    assert not Job.objects.exclude(position=None).exists()
    go_on("task", one_of_three.module_path)
    assert Job.objects.exclude(position=None).count() == 3


def test_a_pause_ends_when_its_time_is_over():
    add.enqueue(1)
    add.using(queue_name="mail").enqueue(2)
    stop("task", add.module_path, until=timedelta(hours=1))
    stop("queue", "mail", until=timedelta(hours=2))
    assert run_jobs() == 0

    with moved_clock("61m"):
        assert end_lapsed(DATABASE) == 1
        assert let_go_unpaused(DATABASE) == 1
        assert run_jobs() == 1
    with moved_clock("121m"):
        assert run_jobs() == 1


def test_a_worker_that_gives_back_after_the_resume_leaves_nothing_behind():
    add.enqueue(1)
    stop("task", add.module_path)
    (attempt,) = claim(a_worker())
    go_on("task", add.module_path)

    settle(DATABASE, [ends.paused(attempt).outcome])

    assert let_go_unpaused(DATABASE) == 1
    assert run_jobs() == 1


def test_what_another_pause_covers_stays():
    of_tenant.enqueue(1)
    stop("key", "tenant:1")
    stop("task", of_tenant.module_path)
    run_jobs()

    go_on("key", "tenant:1")

    assert Job.objects.get().blocked_by == "paused"
    assert not go_on("key", "tenant:1")


def test_a_pause_said_again_says_the_new_reason():
    stop("queue", "default", reason="one", by="ann")
    stop("queue", "default", reason="two", by="bob")

    (found,) = pauses(DATABASE, ["default"])

    assert (found.kind, found.name, found.reason, found.paused_by) == (
        Pause.QUEUE, "default", "two", "bob",
    )  # fmt: skip


def test_a_pause_of_another_backend_is_none_of_mine():
    add.enqueue(1)
    pause(DATABASE, "other", "queue", "default")
    pause(DATABASE, "other", "task", add.module_path)

    assert run_jobs() == 1
