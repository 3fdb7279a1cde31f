"""Bodies that run at least once, whose effects are outside the database, sync and async."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from chaos.project.work import ledger
from chaos.project.work.drawn import Tripped
from chaos.project.work.exactly import AGAIN, DEATHS
from django_once import task


@task(queue_name="work", retry=AGAIN, max_deaths=DEATHS, takes_context=True)
def least(context: Any, number: int, seconds: float, trips: int) -> int:
    """Take its time."""
    ledger.begun(context, number)
    time.sleep(seconds)
    if context.attempt <= trips:
        raise Tripped
    return number


@task(queue_name="work", retry=AGAIN, max_deaths=DEATHS, takes_context=True)
async def least_async(context: Any, number: int, seconds: float, trips: int) -> int:
    """Take its time."""
    ledger.begun(context, number)
    await asyncio.sleep(seconds)
    if context.attempt <= trips:
        raise Tripped
    return number


KINDS = {"least": (least, 20), "least_async": (least_async, 15)}
