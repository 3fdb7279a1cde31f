"""`once workers` and `once status`: what a person reads, and what a program does."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from django_once import __version__
from django_once.models import Worker
from django_once.models.job.settle import settle
from tests.jobs import (
    a_worker,
    claim,
    claim_one,
    given_back,
    store,
)
from tests.management.shapes import BACKEND, QUEUE, STATUS, WORKER, one_of_each, refuse_difference
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]

# once workers


def test_workers_are_listed_with_where_they_stand():
    alive = a_worker("ann", host="h1", pid=7, queues='["a","b"]', concurrency=4)
    a_worker("bob", lease=timedelta(seconds=-90))
    store()
    claim(alive)

    answer = once("workers")

    assert (answer.code, "\x1b" in answer.out) == (0, False)
    title, *rows = answer.lines
    assert title.split() == ["NAME", "STATE", "HOST", "PID", "QUEUES", "JOBS", "STARTED", "LEASE",
                             "ENDED", "ID"]  # fmt: skip
    told = {line.split()[0]: line for line in rows}
    assert re.search(r"alive +h1 +7 +a, b +1/4 .* 59 m +– ", told["ann"])
    assert re.search(r"lapsed .* over for 1 m +– ", told["bob"])


def test_a_worker_has_these_keys():
    a_worker("ann", queues='["a"]', tasks='["t"]')

    answer = once("workers", "--json")

    (worker,) = answer.json["workers"]
    refuse_difference(worker, WORKER)
    assert (worker["queues"], worker["tasks"], worker["state"]) == (["a"], ["t"], "alive")


def test_workers_that_ended_long_ago_are_left_out():
    worker = a_worker("ann")
    Worker.objects.filter(pk=worker.id).update(stopped_at=datetime(2026, 1, 1))

    assert once("workers").out == "No worker is running. Start one: python manage.py once worker\n"
    (found,) = once("workers", "--json", "--since", "3000d").json["workers"]
    assert found["state"] == "stopped"


# once status


def test_all_is_well_when_nothing_is_wrong():
    a_worker("ann", queues='["*"]')
    store()

    answer = once("status", "--backend", "default")

    assert (answer.code, answer.lines[-1]) == (0, "All is well.")
    assert answer.lines[1].split() == [
        "QUEUE", "READY", "RUNNING", "SCHEDULED", "BLOCKED", "OLDEST", "READY", "BACKLOG",
    ]  # fmt: skip
    assert "\x1b" not in answer.out


def test_the_status_has_these_keys():
    one_of_each()

    answer = once("status", "--json")

    refuse_difference(answer.json, STATUS)
    assert answer.json["version"] == __version__
    assert [one["backend"] for one in answer.json["backends"]] == ["default", "other"]
    for backend in answer.json["backends"]:
        refuse_difference(backend, BACKEND)
        assert list(backend["last_minute"]) == ["failed", "successful"]
        assert list(backend["workers"]) == ["alive", "lapsed"]
        for queue in backend["queues"]:
            refuse_difference(queue, QUEUE)
    (queue,) = [one for one in answer.json["backends"][0]["queues"] if one["queue"] == "default"]
    states = [queue[state] for state in ("ready", "running", "scheduled", "blocked")]
    assert states == [1, 1, 1, 1]
    assert queue["oldest_ready_seconds"] >= 0
    assert answer.json["backends"][0]["last_minute"] == {"failed": 1, "successful": 1}


def test_what_is_wrong_is_told_with_what_to_do_and_in_the_exit_status():
    store(queue="mail")
    assert "Start one: python manage.py once worker" in once("status").out

    a_worker("ann", queues='["default"]')
    answer = once("status")
    assert answer.code == 1
    assert "Queue 'mail' has 1 job that could run, and no worker takes from it." in answer.out
    assert once("status", "--json").json["ok"] is False

    settle("default", [given_back(claim_one(a_worker(queues='["*"]')), blocked_by="unknown_task")])
    assert "1 job of backend 'default' cannot run now." in once("status").out

    store()
    lost = a_worker()
    claim(lost)
    Worker.objects.filter(pk=lost.id).update(lost_at=datetime(2026, 1, 1))
    assert "Workers that are gone hold 1 job of backend 'default'." in once("status").out
    a_worker(lease=timedelta(seconds=-1))
    assert "1 worker of backend 'default' has not renewed its lease." in once("status").out


def test_a_queue_that_a_worker_leaves_out_counts_as_unread_only_for_it():
    store(queue="mail")
    a_worker("ann", queues='["*"]')

    assert once("status", "--backend", "default").code == 0


def test_watching_takes_a_sensible_pause():
    answer = once("status", "--watch", 0)

    assert (answer.code, "--watch takes 0.1 to 3600 seconds, got 0." in answer.err) == (2, True)
