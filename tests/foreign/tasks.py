"""What the workers of others run: a body that takes its time, and says that it began."""

from __future__ import annotations

import os
import time
from pathlib import Path

from django_once import exactly_once, task
from tests.app.models import Note

LEDGER = "ONCE_TEST_STARTS"
SECONDS = 1.5


def bill(text: str) -> str:
    with Path(os.environ[LEDGER]).open("a") as ledger:
        ledger.write(f"{os.getpid()}\n")
    Note.objects.create(text=text)
    time.sleep(SECONDS)
    return text


@task(backend="rq", queue_name="once-tests")
@exactly_once
def bill_by_rq(text: str) -> str:
    return bill(text)


@task(backend="table")
@exactly_once
def bill_by_table(text: str) -> str:
    return bill(text)


@task(backend="immediate")
@exactly_once
def bill_at_once(text: str) -> str:
    return bill(text)


@task(backend="dummy")
@exactly_once
def bill_never(text: str) -> str:
    return bill(text)


@task(backend="table")
def rest() -> None:
    time.sleep(0.05)


@task(backend="rq", queue_name="once-tests")
def rest_by_rq() -> bool:
    return Note.objects.exists()
