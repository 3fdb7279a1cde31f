"""What people do inside an `exactly_once` body: all of it commits with the success, or none."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction

from django_once import Retry, crash, exactly_once, task
from django_once.models import Job
from django_once.testing import run_jobs
from tests.app.models import Note
from tests.jobs import in_threads

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

on_sqlite = pytest.mark.skipif("connection.vendor == 'sqlite'", reason="There is one writer.")


def texts() -> list[str]:
    return sorted(Note.objects.values_list("text", flat=True))


def ran(declared: Any, *args: Any) -> Job:
    """Run the jobs that one of this task leads to, and return its row."""
    result = declared.enqueue(*args)
    run_jobs()
    return Job.objects.get(pk=result.id)


@task
def note_plainly(text: str) -> None:
    Note.objects.create(text=text)


@task
@exactly_once
def note(text: str) -> None:
    Note.objects.create(text=text)


@pytest.fixture(autouse=True)
def _next_is_clean() -> Iterator[None]:
    """After each of them another body finds this connection as it must be."""
    yield
    assert ran(note, "after").status == "SUCCESSFUL"
    assert "after" in texts()


# Jobs that are enqueued inside are effects like any other.


@task
@exactly_once
def note_and_enqueue(fail: bool) -> None:
    Note.objects.create(text="parent")
    note.enqueue("child")
    note_plainly.enqueue_many([(("one",), {}), (("two",), {})])
    if fail:
        raise ValueError


@pytest.mark.parametrize(
    ("fail", "written"), [(False, ["child", "one", "parent", "two"]), (True, [])]
)
def test_jobs_enqueued_inside_are_there_with_the_success_only(fail, written):
    row = ran(note_and_enqueue, fail)

    assert (row.status, texts()) == ("FAILED" if fail else "SUCCESSFUL", written)
    assert Job.objects.count() == (1 if fail else 4)


def test_jobs_enqueued_inside_go_with_a_crash_before_the_commit():
    crash.arm("exactly_once.verified:raise")
    try:
        ran(note_and_enqueue, False)
    finally:
        crash.arm(None)

    assert (Job.objects.count(), texts()) == (1, [])


# Threads.


@task
@exactly_once
def write_in_a_thread() -> None:
    def write() -> None:
        try:
            Note.objects.create(text="apart")
        finally:
            connections.close_all()

    Note.objects.create(text="within")
    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    raise ValueError


@on_sqlite
def test_a_thread_has_a_connection_of_its_own_and_what_it_writes_stays():
    row = ran(write_in_a_thread)

    assert (row.status, texts()) == ("FAILED", ["apart"])


@task
@exactly_once
async def gather(fail: bool) -> None:
    await asyncio.gather(*(Note.objects.acreate(text=f"{n}") for n in range(10)))
    if fail:
        raise ValueError


@pytest.mark.parametrize("fail", [False, True])
def test_what_is_gathered_is_in_the_one_transaction(fail):
    row = ran(gather, fail)

    assert row.status == ("FAILED" if fail else "SUCCESSFUL")
    assert len(texts()) == (0 if fail else 10)


@task
@exactly_once
async def leave_a_task_behind() -> None:
    async def write_late() -> None:
        await asyncio.sleep(0.05)
        await Note.objects.acreate(text="late")

    LEFT.append(asyncio.create_task(write_late()))
    await Note.objects.acreate(text="in time")


LEFT: list[Any] = []


def test_what_was_not_awaited_writes_into_nobodys_transaction():
    row = ran(leave_a_task_behind)

    assert (row.status, texts()) == ("SUCCESSFUL", ["in time"])
    assert LEFT.pop().cancelled()


# What is said to the transaction and to the session.


def say(*statements: str) -> Callable[[], None]:
    def said() -> None:
        for statement in statements:
            with connection.cursor() as cursor:
                cursor.execute(statement)

    return said


def commit_unseen() -> None:
    say("COMMIT", "BEGIN")()


def chain_unseen() -> None:
    say("COMMIT AND CHAIN")()


def roll_back_unseen() -> None:
    say("ROLLBACK", "BEGIN")()


def leave_autocommit() -> None:
    transaction.set_autocommit(False)


def swallow_leaving_autocommit() -> None:
    with suppress(transaction.TransactionManagementError):
        transaction.set_autocommit(False)


def close_and_pretend() -> None:
    connection.close()
    connection.connection = None
    connection.in_atomic_block = False
    connection.closed_in_transaction = connection.needs_rollback = False


def fail_without_a_savepoint() -> None:
    with suppress(ValueError), transaction.atomic(savepoint=False):
        raise ValueError


def raise_the_isolation() -> None:
    say("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")()


def write_no_more() -> None:
    say("SET TRANSACTION READ ONLY")()


def delete_own_job() -> None:
    Job.objects.all().delete()


def end_own_session() -> None:
    if connection.vendor == "postgresql":
        say("SELECT pg_terminate_backend(pg_backend_pid())")()
    else:
        say("KILL CONNECTION_ID()")()


# Name, what it does, on which databases, its end, and what is kept of what it wrote.
ENDS = [
    (commit_unseen, "postgresql mysql sqlite", "FAILED", ["before"]),
    (chain_unseen, "postgresql mysql", "FAILED", ["before"]),
    (roll_back_unseen, "postgresql mysql sqlite", "FAILED", []),
    (leave_autocommit, "postgresql mysql sqlite", "FAILED", []),
    (swallow_leaving_autocommit, "postgresql mysql sqlite", "SUCCESSFUL", ["after", "before"]),
    (close_and_pretend, "postgresql mysql sqlite", "FAILED", ["after"]),
    (fail_without_a_savepoint, "postgresql mysql sqlite", "FAILED", []),
    (raise_the_isolation, "postgresql mysql", "FAILED", []),
    (write_no_more, "postgresql", "FAILED", []),
    (delete_own_job, "postgresql mysql sqlite", "FAILED", []),
    (end_own_session, "postgresql mysql", "FAILED", []),
]
DEEDS = {deed.__name__: deed for deed, *_ in ENDS}


@task(retry=Retry(max_attempts=1), max_deaths=0)
@exactly_once
def write_around(deed: str) -> None:
    Note.objects.create(text="before")
    DEEDS[deed]()
    with suppress(DatabaseError, transaction.TransactionManagementError):
        Note.objects.create(text="after")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("deed", "databases", "status", "kept"), ENDS)
def test_whatever_is_done_to_the_transaction_is_told(deed, databases, status, kept):
    if connection.vendor not in databases.split():
        pytest.skip("There is no such statement.")

    row = ran(write_around, deed.__name__)
    connections.close_all()

    assert (row.status, texts()) == (status, kept)
    assert (row.reason in ("raised", "died")) == (status == "FAILED")
    assert (row.history == "[]") == (status == "SUCCESSFUL")


# Locks and cursors.


@task
@exactly_once
def lock_and_leave(pk: int) -> None:
    Note.objects.select_for_update().get(pk=pk)
    if connection.vendor == "postgresql":
        say("SELECT pg_advisory_xact_lock(11)")()
    if pk % 2:
        raise ValueError


@pytest.mark.parametrize("fails", [False, True])
def test_locks_of_a_body_are_free_after_its_end(fails):
    pk = next(
        found.pk
        for found in (Note.objects.create(text="locked") for _ in range(2))
        if found.pk % 2 == fails
    )
    ran(lock_and_leave, pk)

    def take() -> int:
        with transaction.atomic():
            return Note.objects.select_for_update(
                nowait=connection.features.has_select_for_update_nowait
            ).get(pk=pk).pk  # fmt: skip

    assert in_threads(take) == [pk]


ITERATED: list[Any] = []


@task
@exactly_once
def leave_a_cursor_open(fail: bool) -> str:
    Note.objects.bulk_create(Note(text=f"{n}") for n in range(300))
    rows = Note.objects.order_by("pk").iterator(chunk_size=2)
    ITERATED.append(rows)
    first = next(rows).text
    if fail:
        raise ValueError
    return first


@pytest.mark.parametrize("fail", [False, True])
def test_a_cursor_that_was_left_open_keeps_nothing_from_its_end(fail):
    row = ran(leave_a_cursor_open, fail)

    assert row.status == ("FAILED" if fail else "SUCCESSFUL")
    assert len(texts()) == (0 if fail else 300)
    with suppress(DatabaseError):
        ITERATED.pop().close()


@task(max_deaths=0)
@exactly_once
def leave_half_an_answer() -> None:
    Note.objects.create(text="a")
    from MySQLdb.cursors import SSCursor

    cursor = connection.connection.cursor(SSCursor)
    ITERATED.append(cursor)
    cursor.execute("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("connection.vendor != 'mysql'", reason="Others read answers to their end.")
def test_an_answer_that_was_not_read_to_its_end_is_no_half_success():
    row = ran(leave_half_an_answer)
    with suppress(Exception):
        ITERATED.pop().close()

    # One driver reads the rest by itself, the other says that commands are out of order.
    assert (row.status, texts()) in (("SUCCESSFUL", ["a"]), ("FAILED", []))


# What the body sees of its own job.


@task(takes_context=True)
@exactly_once
def look_at_itself(context: Any) -> list[Any]:
    Note.objects.create(text="a")
    return [context.task_result.cancel(), Job.objects.get().status]


def test_a_body_cannot_cancel_the_job_whose_success_it_writes():
    row = ran(look_at_itself)

    assert (row.status, row.cancel_requested_at, texts()) == ("SUCCESSFUL", None, ["a"])
    assert json.loads(row.return_value) == [False, "SUCCESSFUL"]


# Hooks.


def raise_operational() -> None:
    raise OperationalError("another database does not answer")


HOOKS: dict[str, Callable[[], Any]] = {
    "exit": sys.exit,
    "operational": raise_operational,
    "close": connections.close_all,
}


@task
@exactly_once
def hook(name: str) -> None:
    Note.objects.create(text="kept")
    transaction.on_commit(HOOKS[name])


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_misbehaves_changes_nothing_and_is_told(name, caplog):
    row = ran(hook, name)

    assert (row.status, row.attempt, texts()) == ("SUCCESSFUL", 1, ["kept"])
    assert ("hook.failed" in caplog.text) == (name != "close")
