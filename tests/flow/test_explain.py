"""Explaining: each reason for which a job does not run is named, with its evidence."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection

from django_once import sql
from django_once.models import Job
from django_once.models.job.cancel import cancel
from django_once.models.job.explain import explain
from django_once.models.job.ready import promote
from django_once.models.job.settle import settle, start
from django_once.models.pause.stop import pause
from django_once.models.series.add import add, replace
from django_once.sql.predicates import PREDICATES
from django_once.testing import run_jobs
from tests.app.tasks import add as add_task
from tests.flow.tasks import one_of_three, twice_a_minute
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    claim_one,
    given_back,
    new_job,
    row,
    store,
)
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


@pytest.fixture
def worker():
    """A living worker that takes from every queue and knows the tasks of these tests."""
    known = [add_task.module_path, one_of_three.module_path, twice_a_minute.module_path]
    return a_worker(queues='["*"]', tasks=json.dumps([*known, "tests.add"]))


def against(job):
    """Return the first condition that does not hold, and what is said of it."""
    found = explain(DATABASE, job)
    assert found is not None
    for finding in found.findings:
        if not finding.holds:
            assert found.says == finding.says
            return finding
    return None


def test_a_job_that_has_ended_says_how_and_when(worker):
    job = store()
    cancel(DATABASE, [job])

    finding = against(job)

    assert finding.name == "ready"
    assert "it ended as FAILED" in finding.says
    assert finding.evidence["reason"] == "cancelled"


def test_a_running_job_says_on_which_worker(worker):
    job = store()
    attempt = claim_one(worker)
    start(DATABASE, attempt)

    finding = against(job)

    assert "attempt 1 runs on worker 'ann' since" in finding.says
    assert finding.evidence["worker"] == str(worker.id)


def test_a_scheduled_job_says_until_when(worker):
    job = store(run_after=timedelta(hours=1))

    finding = against(job)

    assert finding.name == "due"
    assert "it is not due until" in finding.says
    assert finding.evidence["due_at"] == row(job).due_at


def test_a_retry_says_for_which_attempt_it_waits(worker):
    job = store(max_attempts=3)
    settle(DATABASE, [another_try(claim_one(worker), delay=600.0)])

    assert "for attempt 2" in against(job).says


def test_a_task_that_nobody_knows_is_named(worker):
    job = store(task="shop.gone")
    settle(DATABASE, [given_back(claim_one(worker), blocked_by="unknown_task")])

    finding = against(job)

    assert "'shop.gone'" in finding.says
    assert finding.evidence["known_to"] == []


def test_a_predecessor_that_runs_is_named(worker):
    first = new_job(key="poll:7")
    add(DATABASE, first)
    claim_one(worker)
    second = new_job(key="poll:7")
    replace(DATABASE, second, "queue_one")

    finding = against(second.id)

    assert "its predecessor under key 'poll:7' still runs" in finding.says
    assert finding.evidence["running"] == [str(first.id)]


def test_a_superseded_job_names_the_one_in_its_place(worker):
    first, second = new_job(key="poll:7"), new_job(key="poll:7")
    add(DATABASE, first)
    replace(DATABASE, second, "supersede")

    finding = against(first.id)

    assert "it was superseded" in finding.says
    assert finding.evidence["present"] == str(second.id)


def test_a_full_limit_names_those_who_hold_it(worker):
    ids = [one_of_three.enqueue(number).id for number in range(5)]
    promote(DATABASE)

    finding = against(row(ids[4]).pk)

    assert finding.evidence["held_by"] == ids[:3]
    assert (finding.evidence["concurrency"], finding.evidence["ahead"]) == (3, 1)
    assert "limit 'three' lets 3 hold a slot at once" in finding.says


def test_an_empty_rate_says_when_it_is_full_again(worker):
    ids = [twice_a_minute.enqueue(number).id for number in range(3)]
    promote(DATABASE)

    next_one, after_it = against(row(ids[1]).pk), against(row(ids[2]).pk)

    assert "when the rate of limit 'slow' lets it" in next_one.says
    assert "its rate lets the next begin at" in after_it.says
    begins = after_it.evidence["rate_free_at"] - row(ids[0]).enqueued_at
    assert begins.total_seconds() == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize(
    ("kind", "name"), [("queue", "default"), ("task", "tests.add"), ("key", "tenant:7")]
)
def test_a_pause_names_who_paused_what_and_why(worker, kind, name):
    job = store(limit_key="tenant:7")
    pause(DATABASE, "default", kind, name, reason="moving", by="bob", until=timedelta(hours=1))

    finding = against(job)

    assert f"{kind} {name!r} is paused by bob until" in finding.says
    assert finding.says.endswith(": moving")
    assert finding.name == ("queue_open" if kind == "queue" else "unpaused")


def test_what_a_pause_has_put_aside_names_it_too(worker):
    job = add_task.enqueue(1)
    pause(DATABASE, "default", "task", add_task.module_path, by="bob")
    run_jobs()

    finding = against(row(job.id).pk)

    assert (finding.name, finding.evidence["paused_by"]) == ("unblocked", "bob")


def test_a_queue_without_a_worker_says_so():
    job = store()
    assert "no living worker takes from queue 'default': none lives" in against(job).says

    a_worker(queues='["mail"]', tasks='["tests.add"]')
    assert "1 live, on other queues" in against(job).says


def test_workers_of_another_release_are_named():
    a_worker(name="old", queues='["default"]', tasks='["shop.other"]')
    job = store()

    finding = against(job)

    assert "no worker on queue 'default' knows task 'tests.add': old" in finding.says


def test_a_job_that_can_run_says_how_many_come_before_it(worker):
    for _ in range(3):
        store()
    store(priority=10)
    store(queue="mail")
    job = store()

    found = explain(DATABASE, job)

    assert against(job) is None
    assert found.says == "4 ready jobs of queue 'default' come before it; 0.0 a second end now"


def test_the_conditions_are_those_of_the_claim():
    store()
    seen = []

    def remember(execute, statement, parameters, many, context):
        seen.append(statement)
        return execute(statement, parameters, many, context)

    with connection.execute_wrapper(remember):
        claim(a_worker())

    words = {
        "now": sql.on(DATABASE).now, "key": connection.ops.quote_name("key"), "backend": "%s",
        "queue": "lane.queue" if connection.vendor == "postgresql" else "job.queue",
    }  # fmt: skip
    said = " ".join(" ".join(seen).replace("job.", "").split())
    for predicate in PREDICATES:
        wanted = predicate.holds.format(**words).replace("job.", "")
        if predicate.name == "unpaused":
            wanted = wanted.removesuffix(" = 0")
        assert wanted in said, predicate.name


def test_the_shell_shows_it_to_people_and_to_programs(worker):
    job = store(run_after=timedelta(hours=1))

    text, program = once("explain", job), once("explain", job, "--json").json

    assert "✗ due" in text.out
    assert text.lines[0] == f"Job {job} (tests.add) is scheduled"
    assert (program["state"], program["id"]) == ("scheduled", str(job))
    assert {one["name"] for one in program["findings"]} == {
        *(predicate.name for predicate in PREDICATES), "worker", "turn",
    }  # fmt: skip


def test_a_result_explains_itself():
    result = add_task.enqueue(1)

    assert "no living worker" in result.explain().says
    Job.objects.all().delete()
    with pytest.raises(Exception, match="is stored no more"):
        result.explain()
