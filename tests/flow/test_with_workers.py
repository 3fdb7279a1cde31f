"""Limits, shares and pauses under workers that are processes of their own, and are killed."""

from __future__ import annotations

import random
import signal
import time

import pytest
from django.db import connection

from django_once.models import Job, Tally
from django_once.models.job.ready import promote
from django_once.models.pause.stop import pause, resume
from tests.flow.tasks import drip, fail_until, noted, pass_the_door, serve
from tests.processes.conftest import ledger, start  # noqa: F401 - fixtures
from tests.processes.workers import ended, send, until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def are_over(task):
    return not Job.objects.filter(task=task.module_path, status__in=["READY", "RUNNING"]).exists()


def most_at_once(lines):
    """Return how many of the bodies that came to their end overlapped at most."""
    outs = {line.tag: line.at for line in lines if line.what == "out"}
    moments = [
        (at, step)
        for line in lines
        if line.what == "in" and line.tag in outs
        for at, step in ((line.at, 1), (outs[line.tag], -1))
    ]
    most = inside = 0
    for _, step in sorted(moments):
        inside += step
        most = max(most, inside)
    return most


def test_a_limit_is_never_exceeded_although_workers_are_killed(start, ledger):  # noqa: F811
    pass_the_door.enqueue_many([((number, 0.02), {}) for number in range(150)])
    commands = [start("--processes", "4", "--concurrency", "2").ready(4) for _ in range(2)]

    for _ in range(4):
        time.sleep(0.3)
        send(signal.SIGKILL, random.choice(random.choice(commands).workers or [0]))
    until(lambda: are_over(pass_the_door), 60, "all through the door")

    assert Job.objects.filter(status="SUCCESSFUL").count() == 150
    assert max(int(line.tag) for line in ledger.lines("inside")) <= 3
    once = [line for line in ledger.lines() if ledger.count("in", line.tag) == 1]
    assert most_at_once(once) <= 3


def test_a_rate_is_kept_by_workers(start, ledger):  # noqa: F811
    start("--concurrency", "4").ready()
    drip.enqueue_many([((number,), {}) for number in range(200)])

    until(lambda: ledger.count("drip") >= 100, 30, "a hundred drops")

    drops = [line.at for line in ledger.lines("drip")]
    # The first half second belongs to the start.
    seconds = drops[99] - drops[10]
    assert 89 / seconds == pytest.approx(20, rel=0.05)


def test_floods_share_by_weight_and_a_third_hardly_waits(start, ledger):  # noqa: F811
    for tenant in ("light", "heavy"):
        serve.enqueue_many([((tenant, number), {}) for number in range(1_500)])
    while promote("default"):
        continue
    start("--concurrency", "4").ready()
    until(lambda: ledger.count("served") > 100, 20, "the first of the floods")
    waits = []

    for number in range(4):
        began = time.monotonic()
        serve.enqueue("third", number)
        until(lambda number=number: ledger.count("served", "third") > number, 5, "the third")
        waits.append(time.monotonic() - began)
    until(lambda: ledger.count("served") > 1_200, 30, "most of the floods")

    served = [line.tag for line in ledger.lines("served") if line.tag != "third"][:1_000]
    assert served.count("heavy") / served.count("light") == pytest.approx(3, rel=0.05)
    # Where nothing wakes the keeper, it looks once a second.
    assert max(waits) < (1 if connection.vendor == "postgresql" else 2.5)


def test_a_breaker_holds_back_what_was_claimed_before_it_opened(start, ledger, tmp_path):  # noqa: F811
    up = tmp_path / "up"
    fail_until.enqueue_many([((str(up), number), {}) for number in range(200)])
    start("--processes", "2", "--concurrency", "2").ready(2)

    until(lambda: Job.objects.filter(blocked_by="breaker").count() > 150, what="it to open")
    # Five to open it, and what two processes had begun before they knew: not all they had claimed.
    assert ledger.count("tried") <= 45
    until(lambda: Tally.objects.filter(trial__isnull=False).exists(), what="a trial")
    up.touch()
    until(lambda: Job.objects.filter(status="SUCCESSFUL").count() >= 155, what="the others")

    assert not Tally.objects.filter(opened_at__isnull=False).exists()


def test_what_is_paused_stays_so_across_restarts_and_runs_in_order(start, ledger):  # noqa: F811
    for number in range(10):
        noted.using(queue_name="mail").enqueue(f"mail-{number}")
        noted.enqueue(f"task-{number}")
    pause("default", "default", "queue", "mail")
    pause("default", "default", "task", noted.module_path)

    for _ in range(2):
        command = start("--concurrency", "1").ready()
        until(lambda: Job.objects.filter(blocked_by="paused").count() == 10, what="put aside")
        assert command.stop() == 0
    assert ledger.tags() == []

    resume("default", "default", "task", noted.module_path)
    start("--concurrency", "1").ready()
    until(lambda: ledger.count("ran") == 10, what="the task")
    resume("default", "default", "queue", "mail")
    until(lambda: ledger.count("ran") == 20, what="the queue")

    assert ledger.tags() == [
        *(f"task-{number}" for number in range(10)), *(f"mail-{number}" for number in range(10)),
    ]  # fmt: skip


def test_a_limited_job_starts_soon_after_it_was_enqueued(start, ledger):  # noqa: F811
    if connection.vendor != "postgresql":
        pytest.skip("Nothing wakes the keeper there: it looks once a second.")
    start("--concurrency", "1").ready()
    time.sleep(0.5)

    began = time.monotonic()
    result = pass_the_door.enqueue(1, 0.0)
    ended(result)

    assert time.monotonic() - began < 0.5
