"""Tasks of a user's app, each as small as its test allows."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from django_once import Retry, task
from tests.app.models import Note


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task
async def add_later(a: int, b: int) -> int:
    return a + b


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return {"args": args, "kwargs": kwargs}


@task
def fail(message: str = "no") -> None:
    raise ValueError(message)


@task(retry=Retry(max_attempts=3, base="10s", jitter=0))
def fail_again() -> None:
    raise ValueError("again")


@task
def note(text: str) -> None:
    Note.objects.create(text=text)


@task
def note_and_fail(text: str) -> None:
    Note.objects.create(text=text)
    raise ValueError(text)


@task
def note_after_commit(text: str) -> None:
    transaction.on_commit(lambda: Note.objects.create(text=text))


@task(delivery="exactly_once", timeout="1s")
def note_once(text: str) -> None:
    Note.objects.create(text=text)


@task(delivery="at_most_once")
def fail_once() -> None:
    raise ValueError("once")


@task(takes_context=True)
def tell(context: Any) -> list[Any]:
    return [context.job_id, context.attempt, context.fence, context.task_result.status]


@task
def enqueue_another(a: int) -> str:
    return str(add.enqueue(a).id)


@task(backend="other")
def add_elsewhere(a: int, b: int) -> int:
    return a + b


@task(takes_context=True)
def tell_when_due(context: Any) -> str:
    return str(context.scheduled_for)


@task(takes_context=True)
async def tell_later_when_due(context: Any) -> str:
    return str(context.scheduled_for)


@task(unique="add:{a}")
def add_one_at_a_time(a: int, b: int = 1) -> int:
    return a + b


@task(delivery="exactly_once", takes_context=True)
def note_moment(context: Any, schedule: str) -> None:
    Note.objects.create(text=f"{schedule} {context.scheduled_for.isoformat()}")


@task(lock="turn", if_held="wait")
def take_a_turn(number: int) -> None:
    Note.objects.create(text=f"begin {number}")
    time.sleep(0.02)
    Note.objects.create(text=f"end {number}")
