"""One transaction for what a body writes and for its job's success: whole, or not at all."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from django_once import Cancel, Retry, Snooze, crash, exactly_once, task
from django_once.models import Job
from django_once.testing import run_jobs
from tests.app.models import Note
from tests.jobs import in_threads

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def texts() -> list[str]:
    return sorted(Note.objects.values_list("text", flat=True))


def ran(declared, *args, **kwargs):
    """Run one job of this task and return its row."""
    result = declared.enqueue(*args, **kwargs)
    run_jobs()
    return Job.objects.get(pk=result.id)


@task
@exactly_once
def note(text: str) -> str:
    Note.objects.create(text=text)
    return text


@task
@exactly_once
async def note_later(text: str) -> str:
    await Note.objects.acreate(text=text)
    await sync_to_async(Note.objects.create)(text=f"{text}-again")
    return text


@task
@exactly_once
def note_and_fail(text: str) -> None:
    Note.objects.create(text=text)
    raise ValueError(text)


@task
@exactly_once
async def note_later_and_fail(text: str) -> None:
    await Note.objects.acreate(text=text)
    raise ValueError(text)


@pytest.mark.parametrize(("declared", "written"), [(note, ["a"]), (note_later, ["a", "a-again"])])
def test_effects_and_success_are_there_together(declared, written):
    row = ran(declared, "a")

    assert (row.status, row.return_value, texts()) == ("SUCCESSFUL", '"a"', written)
    assert row.finished_at >= row.started_at


@pytest.mark.parametrize("declared", [note_and_fail, note_later_and_fail])
def test_effects_go_with_a_failure(declared):
    row = ran(declared, "a")

    assert (row.status, row.reason, texts()) == ("FAILED", "raised", [])


@task(retry=Retry(max_attempts=3, base="1h"))
@exactly_once
def return_what_json_refuses(text: str) -> object:
    Note.objects.create(text=text)
    return object()


def test_effects_go_with_a_value_that_cannot_be_stored():
    row = ran(return_what_json_refuses, "a")

    assert (row.status, texts()) == ("READY", [])


# What a body does with transactions.


@task
@exactly_once
def nest(text: str) -> None:
    with transaction.atomic():
        Note.objects.create(text=text)
    with suppress(ValueError), transaction.atomic():
        Note.objects.create(text="rolled back")
        raise ValueError


def test_an_atomic_block_inside_is_a_savepoint():
    row = ran(nest, "kept")

    assert (row.status, texts()) == ("SUCCESSFUL", ["kept"])


@task
@exactly_once
def endure(text: str) -> None:
    with transaction.atomic(durable=True):
        Note.objects.create(text=text)


def test_a_durable_block_is_refused_inside():
    row = ran(endure, "a")

    assert (row.status, texts()) == ("FAILED", [])
    assert "A durable atomic block cannot be nested" in row.history


@task
@exactly_once
def note_after_commit(text: str, fail: bool) -> None:
    transaction.on_commit(lambda: Note.objects.create(text=text))
    if fail:
        raise ValueError


@pytest.mark.parametrize(("fail", "written"), [(False, ["hook"]), (True, [])])
def test_hooks_run_after_the_commit_and_only_after_one(fail, written):
    ran(note_after_commit, "hook", fail)

    assert texts() == written


@task
@exactly_once
def break_a_hook() -> None:
    Note.objects.create(text="kept")
    transaction.on_commit(lambda: 1 / 0)


def test_a_hook_that_raises_changes_nothing_of_what_was_committed(caplog):
    row = ran(break_a_hook)

    assert (row.status, row.failures, texts()) == ("SUCCESSFUL", 0, ["kept"])
    assert "hook.failed" in caplog.text


@task
@exactly_once
def leave_for_later(text: str) -> None:
    Note.objects.create(text=text)
    raise Snooze("5m")


@task
@exactly_once
def leave_for_good(text: str) -> None:
    Note.objects.create(text=text)
    raise Cancel("withdrawn")


@pytest.mark.parametrize(
    ("declared", "became"),
    [(leave_for_later, ("READY", "snoozed")), (leave_for_good, ("FAILED", "cancelled"))],
)
def test_a_body_that_ends_by_a_word_leaves_nothing_behind(declared, became):
    row = ran(declared, "a")

    assert ((row.status, row.reason), texts()) == (became, [])


# Verified last: what a body has broken, or ended, is not a success.


@task(retry=Retry(max_attempts=2, base="1h"))
@exactly_once
def swallow_an_error(text: str) -> None:
    Note.objects.create(text=text)
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM there_is_no_such_table")


def test_a_swallowed_error_that_broke_the_transaction_is_no_success():
    row = ran(swallow_an_error, "a")

    if connection.vendor == "postgresql":
        assert (row.status, row.reason, texts()) == ("READY", "raised", [])
        assert "BrokenTransaction" in row.history
    else:
        # Elsewhere the statement alone is undone, so nothing is broken.
        assert (row.status, texts()) == ("SUCCESSFUL", ["a"])


@task
@exactly_once
def swallow_inside(text: str) -> None:
    note = Note.objects.create(text=text)
    with suppress(IntegrityError):
        Note.objects.create(pk=note.pk, text="twice")


def test_an_error_of_djangos_own_that_is_swallowed_without_a_block_is_no_success():
    row = ran(swallow_inside, "a")

    assert (row.status, texts()) == ("FAILED", [])
    assert "BrokenTransaction" in row.history


@task
@exactly_once
def roll_back(text: str) -> None:
    Note.objects.create(text=text)
    transaction.set_rollback(True)


@task
@exactly_once
def roll_back_behind_django(text: str) -> None:
    Note.objects.create(text=text)
    connection.connection.rollback()


@task
@exactly_once
def leave_a_block_open(text: str) -> None:
    transaction.atomic().__enter__()
    Note.objects.create(text=text)


@pytest.mark.parametrize("declared", [roll_back, roll_back_behind_django, leave_a_block_open])
def test_a_transaction_that_was_ended_is_no_success_and_leaves_nothing(declared):
    row = ran(declared, "a")

    assert (row.status, row.reason, texts()) == ("FAILED", "raised", [])
    assert "BrokenTransaction" in row.history
    assert ran(note, "next").status == "SUCCESSFUL"


@task(max_deaths=1)
@exactly_once
def close(text: str) -> None:
    Note.objects.create(text=text)
    connection.close()


def test_a_body_that_ends_its_session_is_tried_again_as_after_a_death():
    row = ran(close, "a")

    assert (row.status, row.reason, row.attempt, texts()) == ("FAILED", "died", 2, [])
    assert "BrokenTransaction" in row.history


@task(retry=Retry(max_attempts=5, base="1ms", cap="1ms"))
@exactly_once
def commit_behind_django(text: str) -> None:
    Note.objects.create(text=text)
    connection.connection.commit()
    Note.objects.create(text="after")


@task(retry=Retry(max_attempts=5, base="1ms", cap="1ms"))
@exactly_once
def commit_and_fail(text: str) -> None:
    Note.objects.create(text=text)
    connection.connection.commit()
    raise ValueError(text)


def test_a_body_that_fails_after_a_commit_of_its_own_is_not_tried_again():
    row = ran(commit_and_fail, "before")

    assert (row.status, row.reason, row.attempt, texts()) == ("FAILED", "raised", 1, ["before"])
    assert "committed its transaction by itself" in row.history
    assert "ValueError: before" in row.history


def test_a_body_that_commits_by_itself_fails_for_good_and_is_told_what_was_kept():
    row = ran(commit_behind_django, "before")

    # SQLite begins no other transaction by itself.
    kept = ["after", "before"] if connection.vendor == "sqlite" else ["before"]
    assert (row.status, row.reason, row.attempt, texts()) == ("FAILED", "raised", 1, kept)
    assert "committed its transaction by itself" in row.history


@task
@exactly_once
def change_the_schema(text: str) -> None:
    Note.objects.create(text=text)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE made_by_a_body (id integer)")


def test_ddl_that_commits_by_itself_is_told():
    try:
        row = ran(change_the_schema, "a")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS made_by_a_body")

    if connection.vendor == "mysql":
        assert (row.status, texts()) == ("FAILED", ["a"])
        assert "committed its transaction by itself" in row.history
    else:
        assert (row.status, texts()) == ("SUCCESSFUL", ["a"])


# MySQL undoes in silence.


@task
@exactly_once
def swallow_a_deadlock(first: int, second: int, meet: str) -> None:
    Note.objects.create(text="before")
    MEETINGS[meet](first, second)
    Note.objects.create(text="after")


@task
@exactly_once
def swallow_a_lock_timeout(locked: int) -> None:
    Note.objects.create(text="before")
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
    change(locked)
    Note.objects.create(text="after")


def change(pk: int) -> None:
    """Change a row below Django, whose own statements would mark the transaction as broken."""
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Note._meta.db_table} SET text = 'changed' WHERE id = %s", [pk])


MEETINGS: dict = {}
on_mysql = pytest.mark.skipif("connection.vendor != 'mysql'", reason="Others break or raise.")


@on_mysql
def test_a_swallowed_deadlock_is_no_success():
    one, two = (Note.objects.create(text=text).pk for text in ("one", "two"))
    holds, goes = threading.Event(), threading.Event()

    def deadlock(first, second):
        change(first)
        holds.set()
        assert goes.wait(10)
        change(second)

    def other():
        with transaction.atomic():
            # The heavier of two is not the victim.
            Note.objects.bulk_create(Note(text="weight") for _ in range(50))
            Note.objects.filter(pk=two).update(text="by the other")
            assert holds.wait(10)
            goes.set()
            Note.objects.filter(pk=one).update(text="by the other")
            transaction.set_rollback(True)

    MEETINGS["deadlock"] = deadlock
    result = swallow_a_deadlock.enqueue(one, two, "deadlock")
    in_threads(run_jobs, other)

    row = Job.objects.get(pk=result.id)
    assert (row.status, row.reason, texts()) == ("FAILED", "raised", ["one", "two"])
    assert "BrokenTransaction" in row.history


@on_mysql
def test_a_swallowed_lock_timeout_is_no_success():
    locked = Note.objects.create(text="locked").pk
    holds, is_over = threading.Event(), threading.Event()

    def other():
        with transaction.atomic():
            Note.objects.filter(pk=locked).update(text="by the other")
            holds.set()
            assert is_over.wait(20)
            transaction.set_rollback(True)

    def run():
        assert holds.wait(10)
        run_jobs()
        is_over.set()

    result = swallow_a_lock_timeout.enqueue(locked)
    in_threads(run, other)

    row = Job.objects.get(pk=result.id)
    assert (row.status, row.reason, texts()) == ("FAILED", "raised", ["locked"])


# COMMIT itself.


@task(retry=Retry(max_attempts=2, base="1h"))
@exactly_once
def point_nowhere() -> None:
    Note.objects.create(text="a")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO points (at) VALUES (7)")


@pytest.mark.skipif("connection.vendor == 'mysql'", reason="Nothing is deferred there.")
def test_a_constraint_that_fails_at_commit_is_a_failure():
    deferred = "REFERENCES tests_note (id) DEFERRABLE INITIALLY DEFERRED"
    with connection.cursor() as cursor:
        table = Note._meta.db_table
        cursor.execute(f"CREATE TABLE points (at bigint {deferred})".replace("tests_note", table))
    try:
        row = ran(point_nowhere)
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE points")

    assert (row.status, row.reason, row.failures, texts()) == ("READY", "raised", 1, [])


@pytest.mark.parametrize(
    ("point", "became", "written"),
    [
        ("exactly_once.begun", "FAILED", []),
        ("exactly_once.returned", "FAILED", []),
        ("exactly_once.verified", "FAILED", []),
    ],
)
def test_what_is_raised_on_the_way_is_a_failure_without_effects(point, became, written):
    crash.arm(f"{point}:raise")
    try:
        row = ran(note, "a")
    finally:
        crash.arm(None)

    assert (row.status, texts()) == (became, written)


# Whoever holds the row for too long is ended by the server.


@task(timeout="90s")
@exactly_once
def look_at_limits() -> list[str]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW idle_in_transaction_session_timeout")
        else:
            cursor.execute("SELECT @@idle_transaction_timeout")
        return [str(value) for value in cursor.fetchone()]


def limit_outside() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW idle_in_transaction_session_timeout")
        else:
            cursor.execute("SELECT @@idle_transaction_timeout")
        return str(cursor.fetchone()[0])


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="There is no server.")
def test_a_silent_session_is_ended_by_the_server_after_timeout_and_lease():
    result = look_at_limits.enqueue()
    before = limit_outside()
    run_jobs()
    result.refresh()

    # 90 s and a lease of 60 s.
    expected = "150s" if connection.vendor == "postgresql" else "150"
    assert result.return_value in ([expected], ["2min 30s"])
    assert limit_outside() == before


@task(timeout="1s", max_deaths=0)
@exactly_once
def fall_silent(text: str) -> None:
    Note.objects.create(text=text)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '200ms'")
        else:
            cursor.execute("SET SESSION idle_transaction_timeout = 1")
    threading.Event().wait(0.6 if connection.vendor == "postgresql" else 2.5)


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="There is no server.")
@pytest.mark.filterwarnings("ignore")
def test_a_session_that_the_server_ended_is_a_failure_without_effects():
    row = ran(fall_silent, "a")
    connections.close_all()

    assert (row.status, row.reason, texts()) == ("FAILED", "died", [])
