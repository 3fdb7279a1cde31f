"""Bodies that leave the worst behind that a body can, each with the end that it should have."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import gc
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone, translation

from django_once import exactly_once, task
from tests.app.models import Note
from tests.processes import ledger

VALUE = contextvars.ContextVar("value", default="clean")
FAILED, SUCCESSFUL = "FAILED", "SUCCESSFUL"


def said(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__(threading.Lock())

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Exiting(Exception):
    def __str__(self) -> str:
        sys.exit("in a str()")


class Nameless(Exception):
    pass


Nameless.__qualname__ = "Name\x00less" + "x" * 5_000


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def chained() -> None:
    try:
        raise ValueError("x" * 2_000_000)
    except ValueError as error:
        error.__cause__ = error
        raise


async def exiting_child() -> None:
    async def leave() -> None:
        sys.exit(3)

    await asyncio.gather(asyncio.create_task(leave()))


async def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


async def cancel_itself() -> None:
    this = asyncio.current_task()
    assert this is not None
    this.cancel()
    await asyncio.sleep(0)


async def stop_iterating() -> None:
    raise StopIteration


def raise_(error: BaseException | type[BaseException]) -> None:
    raise error


def leave_a_transaction() -> None:
    connection.set_autocommit(False)
    Note.objects.create(text="never committed")


def leave_a_block() -> None:
    transaction.atomic().__enter__()
    Note.objects.create(text="never committed")


def leave_a_broken_block() -> None:
    transaction.atomic().__enter__()
    with suppress(DatabaseError):
        said("SELECT * FROM there_is_no_such_table")
    connection.needs_rollback = True


def begin_by_hand() -> None:
    said("BEGIN")
    said("INSERT INTO tests_note_of_nobody DEFAULT VALUES")


def close_behind_django() -> None:
    connection.ensure_connection()
    connection.connection.close()


def close_the_others() -> None:
    connections.close_all()


def change_the_session() -> None:
    if connection.vendor == "postgresql":
        said("SET search_path TO pg_catalog")
        said("SET ROLE pg_monitor")
        said("SET TIME ZONE 'Asia/Kathmandu'")
    elif connection.vendor == "mysql":
        said("SET SESSION sql_mode = 'ANSI_QUOTES'")
        said("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    else:
        said("PRAGMA foreign_keys = OFF")
        said("CREATE TEMP TABLE once_job (id integer)")


def change_the_session_below_django() -> None:
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        connection.connection.autocommit = False
        connection.connection.execute("SET TIME ZONE 'Asia/Kathmandu'")
        connection.connection.commit()
    else:
        connection.connection.rollback()


def hide_the_table() -> None:
    if connection.vendor == "sqlite":
        said("CREATE TEMP TABLE once_worker (id integer)")
    else:
        kind = "TEMPORARY"
        said(f"CREATE {kind} TABLE once_worker (id integer)")


def take_a_lock_of_the_session() -> None:
    if connection.vendor == "postgresql":
        said("SELECT pg_advisory_lock(7)")
    elif connection.vendor == "mysql":
        said("SELECT GET_LOCK('seven', 1)")
    else:
        said("PRAGMA locking_mode = NORMAL")


def isolate() -> None:
    if connection.vendor == "postgresql":
        said("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        said("SET default_transaction_read_only = on")
    elif connection.vendor == "mysql":
        said("SET SESSION TRANSACTION READ ONLY")
    else:
        said("PRAGMA query_only = ON")


def activate() -> None:
    translation.activate("fr")
    timezone.activate("Asia/Kathmandu")
    VALUE.set("dirty")


def leave_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def leave_a_non_daemon() -> None:
    threading.Thread(target=threading.Event().wait, args=(2,)).start()


def exit_by_name() -> None:
    builtins.exit()


def eat_memory() -> None:
    raise MemoryError


def collect() -> None:
    gc.collect()
    raise_(GeneratorExit)


def return_a_thousand_levels() -> Any:
    value: list[Any] = []
    for _ in range(1_000):
        value = [value]
    return value


class Lying(dict[str, Any]):
    def items(self) -> Any:
        sys.exit("while it was read")

    def __iter__(self) -> Any:
        sys.exit("while it was read")


POISON: dict[str, tuple[Any, str]] = {
    "system exit": (lambda: sys.exit(1), FAILED),
    "exit": (exit_by_name, FAILED),
    "keyboard interrupt": (lambda: raise_(KeyboardInterrupt), FAILED),
    "memory": (eat_memory, FAILED),
    "recursion": (recurse, FAILED),
    "generator exit": (collect, FAILED),
    "stop iteration": (lambda: raise_(StopIteration), FAILED),
    "cancelled": (lambda: raise_(asyncio.CancelledError), FAILED),
    "base": (lambda: raise_(BaseException("of nothing")), FAILED),
    "unpicklable": (lambda: raise_(Unpicklable()), FAILED),
    "unsayable": (lambda: raise_(Unsayable()), FAILED),
    "exiting": (lambda: raise_(Exiting()), FAILED),
    "nameless": (lambda: raise_(Nameless()), FAILED),
    "megabytes": (chained, FAILED),
    "surrogates": (lambda: raise_(ValueError("\ud800\x00")), FAILED),
    "group": (
        lambda: raise_(ExceptionGroup("many", [ValueError(n) for n in range(5_000)])),
        FAILED,
    ),
    "configured": (lambda: raise_(ImproperlyConfigured("said so")), FAILED),
    "open transaction": (leave_a_transaction, SUCCESSFUL),
    "open block": (leave_a_block, SUCCESSFUL),
    "broken block": (leave_a_broken_block, SUCCESSFUL),
    "begin by hand": (begin_by_hand, FAILED),
    "closed line": (close_behind_django, SUCCESSFUL),
    "closed connections": (close_the_others, SUCCESSFUL),
    "session": (change_the_session, SUCCESSFUL),
    "session below": (change_the_session_below_django, SUCCESSFUL),
    "hidden table": (hide_the_table, SUCCESSFUL),
    "session lock": (take_a_lock_of_the_session, SUCCESSFUL),
    "isolation": (isolate, SUCCESSFUL),
    "activated": (activate, SUCCESSFUL),
    "thread": (leave_a_thread, SUCCESSFUL),
    "stubborn thread": (leave_a_non_daemon, SUCCESSFUL),
    "object": (object, FAILED),
    "deep": (return_a_thousand_levels, FAILED),
    "lying": (Lying, FAILED),
    "large": (lambda: "x" * 2_000_000, FAILED),
    "not a number": (lambda: float("nan"), FAILED),
}
AWAITED: dict[str, tuple[Any, str]] = {
    "exiting child": (exiting_child, FAILED),
    "stopped loop": (stop_the_loop, SUCCESSFUL),
    "cancelled by itself": (cancel_itself, FAILED),
    "stop iteration awaited": (stop_iterating, FAILED),
    "system exit awaited": (lambda: sys.exit(2), FAILED),
}


@task
def swallow_poison(name: str) -> Any:
    ledger.write("began", name.replace(" ", "-"))
    return POISON[name][0]()


@task
@exactly_once
def swallow_poison_once(name: str) -> Any:
    ledger.write("began", name.replace(" ", "-"))
    return POISON[name][0]()


@task
async def await_poison(name: str) -> Any:
    ledger.write("began", name.replace(" ", "-"))
    return await AWAITED[name][0]()


@task
def look_around(tag: str) -> dict[str, Any]:
    """Write a row, and return what is as it should be for every body."""
    Note.objects.create(text=tag)
    found = {
        "autocommit": connection.get_autocommit(),
        "in a block": connection.in_atomic_block,
        "language": translation.get_language(),
        "time zone": timezone.get_current_timezone_name(),
        "value": VALUE.get(),
        "jobs": Note.objects.filter(text="never committed").count(),
    }
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for name in ("search_path", "role", "TimeZone", "default_transaction_isolation"):
                cursor.execute(f"SHOW {name}")
                found[name] = cursor.fetchone()[0]
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
            found["locks"] = cursor.fetchone()[0]
        elif connection.vendor == "mysql":
            cursor.execute("SELECT @@sql_mode, @@tx_isolation, IS_USED_LOCK('seven')")
            found["session"] = [str(value) for value in cursor.fetchone()]
        else:
            cursor.execute("PRAGMA foreign_keys")
            found["foreign keys"] = cursor.fetchone()[0]
    return found
