"""The permit around a function: delivered however often, its body begins and commits once.

A scheduler hands a run to a foreign backend together with the id of its record. The function that
`@exactly_once` made takes that id away, so that the body never sees it, and takes the permit in
the transaction of the body: both commit, or neither. Whoever comes second finds the permit locked,
spent or gone, says so in a log line and does nothing, without waiting; only on SQLite, where any
writer holds the lock, it waits for the first.

Without the id, in a call by hand or a job that somebody enqueued, the function is just called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, router, transaction

from django_once import events
from django_once.errors import BrokenTransaction
from django_once.sql.repeat import was_undone

# As django-periodic-tasks has it, so that deliveries on their way survive a move from there.
PERMIT: Final = "_periodic_tasks_execution_id"
TIMES: Final = 5


def permitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that asks for a permit first, when it is called with one."""
    if getattr(function, "asks_for_permit", False):
        return function
    under_permit: Any = _async(function) if iscoroutinefunction(function) else _sync(function)
    under_permit.asks_for_permit = True
    return under_permit  # type: ignore[no-any-return]


def written(database: str, record: UUID) -> str:
    """Return a permit as it travels: its id, and where it is unless that is the usual place."""
    return str(record) if database == _home() else f"{record}@{database}"


def _sync(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        permit = kwargs.pop(PERMIT, None)
        if permit is None:
            return function(*args, **kwargs)
        return _run_under(permit, partial(function, *args, **kwargs))

    return run


def _async(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        permit = kwargs.pop(PERMIT, None)
        if permit is None:
            return await function(*args, **kwargs)
        # What the body awaits of the database comes back to the thread that holds the
        # transaction, since it is called from there.
        body = partial(async_to_sync(function), *args, **kwargs)
        return await sync_to_async(_run_under, thread_sensitive=True)(permit, body)

    return run


def _run_under(permit: str, body: Callable[[], Any]) -> Any:
    """Run a body in the transaction that takes its permit; return None where it is not to be had.

    Under REPEATABLE READ a permit that changed since the snapshot is a conflict, and asked for
    again: nothing of the body has run by then.
    """
    from django_once.models.execution.permit import take, verify

    text, _, place = str(permit).partition("@")
    database, record = place or _home(), _record(text)
    has_begun = False
    for turn in range(1, TIMES + 1):
        try:
            with transaction.atomic(using=database):
                if record is None or not take(database, record):
                    events.permit_spent(permit)
                    return None
                has_begun = True
                value = body()
                if not verify(database, record):
                    raise BrokenTransaction(
                        f"The body under permit {record} swallowed a database error or ended its "
                        "transaction, so what it wrote is gone: nothing of it was kept. Let "
                        "database errors pass, or catch them around an atomic() block of their own."
                    )
                return value
        except DatabaseError as error:
            if has_begun or turn == TIMES or not was_undone(error):
                raise
    raise AssertionError("unreachable")


def _record(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _home() -> str:
    from django_once.models import TaskExecution

    return router.db_for_write(TaskExecution)
