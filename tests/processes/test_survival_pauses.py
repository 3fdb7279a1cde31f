"""Hosts that are paused, and a database that keeps everybody waiting: who was late harms nobody."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from django_once.models import Job
from tests.app.models import Note
from tests.processes.tasks import hold, mark
from tests.processes.workers import Command, ended, job, send, until
from tests.survival.bodies import (
    hold_briefly_once,
    hold_once,
    kill_everybody_at_first,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine, pytest.mark.slow]

SHORT = {"LEASE": "2s"}
on_sqlite = pytest.mark.skipif("connection.vendor == 'sqlite'", reason="The body holds the file.")


@contextmanager
def paused(command: Command) -> Iterator[None]:
    """Stop every process of a command, as a host does that is suspended."""
    pids = (command.pid, *command.children)
    send(signal.SIGSTOP, *pids)
    yield
    send(signal.SIGCONT, *pids)


@contextmanager
def locked_jobs() -> Iterator[None]:
    """Keep everybody from the table of jobs, as a change of it does."""
    table = Job._meta.db_table
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {table} WRITE")
            yield
            cursor.execute("UNLOCK TABLES")
        return
    with transaction.atomic():
        if connection.vendor == "postgresql":
            connection.cursor().execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_database_that_keeps_all_waiting_for_longer_than_a_lease_costs_nobody_anything(
    start, ledger, gate
):
    commands = [start("--concurrency", "2", options=SHORT).ready() for _ in range(2)]
    held = [hold.enqueue(f"{n}", str(gate)) for n in range(4)]
    until(lambda: ledger.count("began") == 4, what="four bodies")
    before = [command.workers for command in commands]
    # Somebody who may declare others lost has read the database for one lease.
    time.sleep(2.5)

    with locked_jobs():
        time.sleep(5)
    time.sleep(1.5)
    gate.touch()
    rows = ended(*held)

    assert {(row.status, row.attempt, row.history) for row in rows} == {("SUCCESSFUL", 1, "[]")}
    assert [command.workers for command in commands] == before
    assert "worker.expired" not in "".join(command.text for command in commands)
    ended(mark.enqueue("after"))


@on_sqlite
def test_a_body_whose_lease_lapsed_while_its_transaction_was_open_commits(start, ledger, gate):
    first = start(options=SHORT).ready()
    result = hold_once.enqueue("a", str(gate))
    until(lambda: ledger.count("began", "a"), what="the body")
    second = start(options=SHORT).ready()

    with paused(first):
        until(lambda: "worker.expired" in second.text, 20, "the end of the lease")
        until(lambda: ended(mark.enqueue("meanwhile")), what="others' work")
    gate.touch()
    (row,) = ended(result)

    assert (row.status, row.attempt, row.fence, row.history) == ("SUCCESSFUL", 1, 1, "[]")
    assert list(Note.objects.values_list("text", flat=True)) == ["a"]
    assert ledger.count("began", "a") == 1


@on_sqlite
def test_a_host_that_is_paused_in_a_transaction_does_not_keep_its_row(start, ledger):
    first = start(options=SHORT).ready()
    result = hold_briefly_once.enqueue("a")
    until(lambda: ledger.count("began", "a"), what="the body")

    with paused(first):
        start(options=SHORT).ready()
        (row,) = ended(result, seconds=25)
    time.sleep(0.5)

    assert (row.status, row.fence, ledger.count("began", "a")) == ("SUCCESSFUL", 2, 2)
    assert list(Note.objects.values_list("text", flat=True)) == ["a"]
    # What the late one says is not recorded.
    assert job(result).history == row.history


def test_without_evidence_of_a_death_all_run_alone_and_nobody_is_charged(start, ledger):
    first = start("--concurrency", "1").ready()
    # Short bodies make the worker claim ahead.
    ended(*[mark.enqueue(f"short-{n}") for n in range(50)])
    with transaction.atomic():
        killer = kill_everybody_at_first.enqueue("killer")
        neighbours = [mark.enqueue(f"{n}") for n in range(10)]
    until(first.has_ended, what="the end of all")
    held = [one for one in (killer, *neighbours) if job(one).status == Job.RUNNING]

    start(options={"LEASE": "2s"}).ready()
    rows = ended(killer, *neighbours, seconds=25)

    assert killer in held
    assert {row.status for row in rows} == {"SUCCESSFUL"}
    assert {row.deaths for row in rows} == {0}
    assert [ledger.count("ran", f"{n}") for n in range(10)] == [1] * 10
    assert ledger.count("began", "killer") == 2


def test_who_wakes_after_a_pause_declares_nobody_lost(start, ledger, gate):
    first = start(options=SHORT).ready()
    time.sleep(2.5)
    second = start(options=SHORT).ready()
    held = hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began", "a"), what="the body")

    # Both are paused, and wake one after the other, as guests of one suspended host do.
    with paused(second), paused(first):
        time.sleep(4)
    until(lambda: first.text or second.text, what="a word")
    time.sleep(1)
    gate.touch()
    (row,) = ended(held)

    assert (row.status, row.attempt) == ("SUCCESSFUL", 1)
    assert "worker.expired" not in first.text + second.text
