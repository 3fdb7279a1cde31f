"""What the bench runs: bodies that do nothing, so that all the time is that of the rest."""

from __future__ import annotations

import asyncio
import os
import time

from bench.project.work.models import Effect
from django_once import Limit, task

_page: dict[str, int] = {}


@task
def nothing(number: int) -> None:
    """Do nothing."""


@task(limit=Limit("key:{key}", concurrency=2))
def nothing_limited(number: int, key: int) -> None:
    """Do nothing, as one of two at once."""


@task(limit=Limit("ten:{key}", concurrency=10))
def nothing_in_ten(number: int, key: int) -> None:
    """Do nothing, as one of ten at once."""


@task(limit=Limit("rare", rate="1/h"))
def nothing_rare(number: int) -> None:
    """Do nothing, once an hour."""


@task
async def nothing_async(number: int) -> None:
    """Do nothing, in an event loop."""


@task
def sleep(seconds: float) -> None:
    """Hold a thread, as a body that waits for somebody does."""
    time.sleep(seconds)


@task
async def sleep_async(seconds: float) -> None:
    """Hold nothing but a place in the event loop."""
    await asyncio.sleep(seconds)


@task(delivery="exactly_once")
def effect(number: int) -> None:
    """Write one row, which commits with the job's success."""
    Effect.objects.create(number=number)


@task(delivery="at_most_once")
def nothing_twice(number: int) -> None:
    """Do nothing, at most once."""


@task
def note(number: int, path: str) -> None:
    """Write down when this body began, by the clock that all processes of the host share."""
    now = time.monotonic_ns()
    if path not in _page:
        _page[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_page[path], b"%d %d\n" % (number, now))
