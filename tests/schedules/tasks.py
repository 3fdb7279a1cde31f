"""Tasks that foreign backends run, under a permit where they promised to run once."""

from __future__ import annotations

import threading

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction

from django_once import exactly_once, task
from tests.app.models import Note

is_inside = threading.Event()
may_end = threading.Event()


@task(backend="broker")
@exactly_once
def bill(text: str) -> str:
    Note.objects.create(text=text)
    return text


@exactly_once
@task(backend="broker")
def bill_from_above(text: str) -> str:
    Note.objects.create(text=text)
    return text


@task(backend="broker")
@exactly_once
async def bill_later(text: str) -> str:
    await sync_to_async(Note.objects.create, thread_sensitive=True)(text=text)
    return text


@task(backend="broker")
@exactly_once
def bill_slowly(text: str) -> str:
    Note.objects.create(text=text)
    is_inside.set()
    assert may_end.wait(30)
    return text


@task(backend="broker")
@exactly_once
def bill_and_fail(text: str) -> None:
    Note.objects.create(text=text)
    raise ValueError(text)


@task(backend="broker")
@exactly_once
def bill_and_hide_an_error(text: str) -> None:
    Note.objects.create(text=text)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
    except DatabaseError:
        return


@task(backend="broker")
@exactly_once
def bill_and_roll_back(text: str) -> None:
    Note.objects.create(text=text)
    transaction.set_rollback(True)


@task(backend="broker")
def tell(text: str) -> str:
    return text


@task(backend="immediate")
@exactly_once
def bill_at_once(text: str) -> str:
    Note.objects.create(text=text)
    return text


@task(backend="dummy")
@exactly_once
def bill_never(text: str) -> None:
    Note.objects.create(text=text)
