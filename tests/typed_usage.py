"""What a user's type checker knows of tasks: this file is read by mypy, and never run.

A line that must be refused says so by its `type: ignore`, which is itself an error when nothing
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_type

from django.tasks import TaskResult

from django_once import Retry, task
from django_once.context import Context
from django_once.declare import Task
from django_once.testing import Clock, assert_enqueued, enqueued_jobs, moved_clock, run_jobs


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task(queue_name="mail", priority=5, retry=Retry(max_attempts=8, base="5s"), timeout="5m")
def send(to: str, *, subject: str) -> None: ...


@task
async def fetch(url: str) -> bytes:
    return url.encode()


@task(delivery="exactly_once", expires=timedelta(hours=1), max_deaths=1)
async def fetch_once(url: str) -> str:
    return url


@task(takes_context=True)
def charge(context: Context, order: int) -> str:
    return context.idempotency_key(f"order:{order}") + str(context.fence + context.attempt)


# Parameters are checked where a job is enqueued.

add.enqueue(1)
add.enqueue(1, b=2)
add.enqueue("1")  # type: ignore[arg-type]
add.enqueue()  # type: ignore[call-arg]
add.enqueue(1, c=2)  # type: ignore[call-arg]
send.enqueue("ann@example.org", subject="hello")
send.enqueue("ann@example.org", "hello")  # type: ignore[call-arg]
charge.enqueue(order=7)
charge.enqueue("7")  # type: ignore[arg-type]

# Results have the type that the function returns; what is awaited is awaited already.

assert_type(add.enqueue(1).return_value, int)
assert_type(fetch.enqueue("x").return_value, bytes)
assert_type(fetch_once.enqueue("x").return_value, str)
assert_type(charge.enqueue(1).return_value, str)
assert_type(add.get_result("…").return_value, int)
assert_type(add.call(1, 2), int)


async def use_async_names() -> None:
    assert_type((await add.aenqueue(1)).return_value, int)
    assert_type((await fetch.aget_result("…")).return_value, bytes)
    assert_type((await add.aenqueue_many([((1,), {})]))[0].return_value, int)
    await add.aenqueue("1")  # type: ignore[arg-type]


# Changed copies keep both.

later: Task[[str], bytes] = fetch.using(run_after=timedelta(minutes=5))
moment = add.using(run_after=datetime(2030, 1, 1, tzinfo=UTC), queue_name="mail", priority=1)
assert_type(moment.enqueue(1).return_value, int)
moment.enqueue("1")  # type: ignore[arg-type]
add.using(colour="red")  # type: ignore[call-arg]

# Many at once.

many = add.enqueue_many([((1,), {"b": 2}), ((3,), {})])
results: Sequence[TaskResult[..., int]] = many
assert_type(many[0].return_value, int)
add.enqueue_many([1, 2])  # type: ignore[list-item]

# A task is no function any more, and its options have types.

add.using(run_after="5m")  # type: ignore[arg-type]
task(retry=3)  # type: ignore[call-overload]
task(timeout="5m", takes_context=True, colour="red")  # type: ignore[call-overload]


# In tests.

with moved_clock("1h") as clock:
    assert_type(clock, Clock)
    clock.advance(timedelta(hours=1))
    assert_type(run_jobs("default", queues=["mail"], max_jobs=3), int)
assert_enqueued(add, 1, b=2)
assert [result.id for result in enqueued_jobs(add)] == []
