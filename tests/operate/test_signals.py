"""Our signals: one for each transition, and receivers that can do no harm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from django_once import Retry, Snooze, events, signals, task
from django_once.backend import DatabaseBackend
from django_once.models import Job
from django_once.models.job.expire import sweep
from django_once.models.job.settle import settle
from django_once.models.worker import expire
from django_once.testing import run_jobs
from tests.jobs import a_worker, claim, claim_one, store, success
from tests.schedules.rows import a_schedule, fire_all

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@task(retry=Retry(max_attempts=2, base="10s", jitter=0))
def fail_twice() -> None:
    raise ValueError("secret")


@task
def look_later() -> None:
    raise Snooze("5m")


@contextmanager
def heard(signal: Any) -> Iterator[list[dict[str, Any]]]:
    told: list[dict[str, Any]] = []

    def receiver(**fields: Any) -> None:
        fields.pop("signal")
        told.append(fields)

    signal.connect(receiver)
    try:
        yield told
    finally:
        signal.disconnect(receiver)


def test_a_retry_and_a_snooze_are_told_with_their_delay():
    with heard(signals.task_retried) as retried, heard(signals.task_snoozed) as snoozed:
        one, other = fail_twice.enqueue(), look_later.enqueue()
        run_jobs()

    assert retried == [{
        "sender": DatabaseBackend, "job": one.id, "task": fail_twice.module_path,
        "queue": "default", "attempt": 1, "fence": 1, "reason": "raised", "delay": 10.0,
    }]  # fmt: skip
    assert [(told["job"], told["delay"]) for told in snoozed] == [(other.id, 300.0)]


def test_a_job_of_a_worker_that_is_gone_is_told_and_so_is_the_worker():
    holder = a_worker("ann", lease=timedelta(seconds=-1))
    job = store()
    Job.objects.filter(pk=job).update(deaths=0)
    with heard(signals.worker_lost) as lost, heard(signals.task_swept) as swept:
        claim(a_worker("bob"), 1)
        from django_once.models import Worker

        Worker.objects.filter(name="bob").update(leased_until="2020-01-01T00:00:00")
        for worker in expire("default"):
            events.worker_expired(worker)
        for one in sweep("default"):
            events.job_swept(one)

    assert str(holder.id) in {told["worker"] for told in lost}
    assert len(lost) == 2
    assert [told["job"] for told in swept] == [str(job)]
    assert swept[0]["status"] == "READY"


def test_a_late_outcome_is_told():
    job = store()
    late = claim_one()
    settle("default", [success(late)])
    with heard(signals.task_superseded) as told:
        if settle("default", [success(late)]):
            events.attempt_superseded(late.id, late.attempt)

    assert [(one["job"], one["attempt"]) for one in told] == [(str(job), 1)]


def test_moments_of_schedules_are_told_fired_or_skipped():
    with heard(signals.schedule_fired) as fired, heard(signals.schedule_skipped) as skipped:
        a_schedule("minutely", due=-185.0)
        fire_all()

    assert {told["schedule"] for told in fired} == {"minutely"}
    assert len(fired) == 1
    assert skipped
    assert all(told["reason"] and told["due_at"] for told in skipped)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_receiver_that_raises_is_told_and_changes_nothing(error, caplog):
    from tests.jobs import in_threads

    def receiver(**_: Any) -> None:
        raise error("no")

    signals.task_snoozed.connect(receiver)
    try:
        job = look_later.enqueue()
        in_threads(run_jobs)
    finally:
        signals.task_snoozed.disconnect(receiver)

    assert Job.objects.get(pk=job.id).reason == "snoozed"
    assert "signal.failed" in caplog.text


def test_nothing_is_done_where_nobody_listens():
    assert not signals.returns_are_heard()
    with heard(signals.task_retried):
        assert signals.returns_are_heard()
