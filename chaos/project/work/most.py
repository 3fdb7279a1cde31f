"""Bodies that are started once at most, sync and async."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from chaos.project.work import ledger
from django_once import task


@task(queue_name="work", delivery="at_most_once", max_deaths=500, takes_context=True)
def most(context: Any, number: int, seconds: float, trips: int) -> int:
    """Take its time."""
    ledger.begun(context, number)
    time.sleep(seconds)
    return number


@task(queue_name="work", delivery="at_most_once", max_deaths=500, takes_context=True)
async def most_async(context: Any, number: int, seconds: float, trips: int) -> int:
    """Take its time."""
    ledger.begun(context, number)
    await asyncio.sleep(seconds)
    return number


KINDS = {"most": (most, 10), "most_async": (most_async, 5)}
