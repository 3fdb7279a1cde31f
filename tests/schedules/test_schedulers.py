"""Schedulers as processes: several at once, killed at any moment, beside workers and alone."""

from __future__ import annotations

import random
import signal
import threading
import time
from uuid import uuid4

import pytest
from django.db import connection, connections

from django_once.models import Job, Schedule, TaskExecution
from django_once.processes import brokers
from django_once.scheduling import audit, dispatch
from django_once.scheduling.firing import fire_due
from tests.app.tasks import note_once
from tests.jobs import in_threads
from tests.processes.workers import until
from tests.schedules.broker import HANGS
from tests.schedules.rows import ADD, DATABASE, a_schedule, again, now, records

pytestmark = [pytest.mark.engine, pytest.mark.races, pytest.mark.django_db(transaction=True)]


def many(count, every=None, due=0.0):
    """Store so many schedules that are due at one moment."""
    moment = now(due)
    Schedule.objects.bulk_create(
        Schedule(
            name=f"s{n}", task=ADD, args=f"[{n}]", every=every or 3600.0, starts_at=moment,
            next_due_at=moment, fires_at=moment, rule_since=moment, overlap="allow",
        )
        for n in range(count)
    )  # fmt: skip


def test_schedulers_that_meet_fire_each_schedule_once():
    many(600)

    def fire():
        fired = 0
        while (told := fire_due(DATABASE, most=50)).looked_at:
            fired += told.fired
        return fired

    fired = in_threads(*[fire] * 3)

    assert sum(fired) == 600
    assert (Job.objects.count(), TaskExecution.objects.count()) == (600, 600)
    assert len({tuple(row) for row in Job.objects.values_list("args")}) == 600


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer.")
def test_what_one_holds_another_passes_over():
    a_schedule("held", due=-10)
    a_schedule("free")

    def hold_and_look():
        from django.db import transaction

        with transaction.atomic():
            list(Schedule.objects.select_for_update().filter(name="held"))
            (told,) = in_threads(lambda: fire_due(DATABASE))
            return told

    assert hold_and_look().fired == 1
    assert fire_due(DATABASE).fired == 1


def test_a_scheduler_alone_fires_in_time_and_ends_when_it_is_told(schedulers):
    schedule = a_schedule(due=0, every=1.0, overlap="allow")
    process = schedulers()

    until(lambda: len(records(schedule)) >= 3, 30, "three firings")
    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    late = [one.created_at - one.due_at for one in TaskExecution.objects.filter(status="PENDING")]
    assert min(late).total_seconds() < 1


@pytest.mark.slow
def test_a_broker_that_hangs_delays_neither_the_others_nor_the_end(schedulers):
    path = note_once.module_path
    hangs = a_schedule("hangs", task=path, args=f'["{HANGS}"]', backend="broker")
    process = schedulers()
    until(lambda: records(hangs), 30, "its firing")

    ours = a_schedule("ours", overlap="allow")
    until(lambda: records(ours), 30, "a firing beside it")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    assert time.monotonic() - began < 20
    assert records(hangs) == [("PENDING", "")]


@pytest.mark.slow
def test_what_is_offered_again_to_a_broker_that_hangs_delays_no_other(schedulers, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_hand_over", lambda *_: None)
        a_schedule("hangs", task=note_once.module_path, args=f'["{HANGS}"]', backend="broker")
        fire_due(DATABASE)
    TaskExecution.objects.update(leased_until=now(-100))
    schedulers()
    until(lambda: TaskExecution.objects.filter(leased_until__gt=now()).exists(), 30, "an offer")

    ours = a_schedule("ours", overlap="allow")

    until(lambda: records(ours), 30, "a firing beside it")


def test_a_run_that_waits_for_its_broker_is_not_sent_twice(monkeypatch):
    sent, may_go = [], threading.Event()
    monkeypatch.setattr(
        brokers, "_dispatch_apart", lambda *order: (may_go.wait(30), sent.append(order))
    )
    crew, (one, other) = brokers.Brokers(), (uuid4(), uuid4())

    for record in (one, other, one, other, other):
        crew.hand_over(DATABASE, "broker", record)
    may_go.set()
    until(lambda: len(sent) == 2, 30, "both")
    crew.hand_over(DATABASE, "broker", one)
    until(lambda: len(sent) == 3, 30, "one of them again")
    crew.end()

    assert [record for _, record in sent] == [one, other, one]


def test_a_worker_fires_schedules_beside_its_jobs(start):
    schedule = a_schedule(due=0, every=1.0)
    worker = start(scheduler=True)

    until(lambda: again(schedule).succeeded_at, 40, "a run that succeeded")

    assert worker.stop() == 0


def test_a_worker_that_shall_not_fire_fires_nothing(start):
    schedule = a_schedule(due=0, every=1.0)
    start().ready()

    time.sleep(1.5)

    assert records(schedule) == []


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="Elsewhere it looks each five seconds."
)
def test_a_scheduler_that_sleeps_wakes_when_a_schedule_changes(schedulers):
    from django_once.scheduling import editing

    far = a_schedule("far", due=10_000)
    schedulers()
    until(lambda: connections_of_schedulers() >= 2, 30, "a scheduler that listens")
    time.sleep(0.5)

    began = time.monotonic()
    editing.change(DATABASE, far.pk, every=1.0, starts_at=now(-100))
    until(lambda: again(far).fired, 30, "a firing")

    assert time.monotonic() - began < 4.5


def connections_of_schedulers():
    with connections[DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


@pytest.mark.timeout(180)
def test_schedulers_that_are_killed_lose_nothing_and_double_nothing(schedulers):
    many(20, every=1.0, due=1.0)
    living = [schedulers() for _ in range(3)]
    until(lambda: TaskExecution.objects.count() > 20, 60, "the first firings")

    for _ in range(4):
        time.sleep(random.uniform(0.3, 0.9))
        victim = living.pop(random.randrange(len(living)))
        victim.kill()
        living.append(schedulers())
    reached = now()
    until(lambda: not Schedule.objects.filter(next_due_at__lte=reached).exists(), 60, "all decided")
    for process in living:
        process.send_signal(signal.SIGTERM)
    for process in living:
        process.wait(15)

    for schedule in Schedule.objects.all():
        balance = audit.verify(DATABASE, schedule, schedule.rule_since, now())
        assert (balance.doubled, balance.unexpected) == ([], [])
        assert [moment for moment in balance.missing if moment <= reached] == []
    fired = TaskExecution.objects.filter(status="PENDING")
    assert fired.count() == Job.objects.count()
    assert set(fired.values_list("job", flat=True)) == set(Job.objects.values_list("pk", flat=True))
