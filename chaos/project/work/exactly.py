"""Bodies whose effects and success commit in one transaction, sync and async."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from chaos.project.work import ledger
from chaos.project.work.drawn import Tripped
from chaos.project.work.models import Effect
from django_once import Retry, task

AGAIN = Retry(max_attempts=200, base="100ms", cap="2s")
DEATHS = 500


def effect(context: Any, number: int) -> dict[str, Any]:
    """Return what one body leaves."""
    return {
        "number": number, "job": context.job_id,
        "attempt": context.attempt, "fence": context.fence,
    }  # fmt: skip


@task(
    queue_name="work", delivery="exactly_once", retry=AGAIN, max_deaths=DEATHS, takes_context=True
)
def exactly(context: Any, number: int, seconds: float, trips: int) -> int:
    """Leave one effect, then take its time."""
    ledger.begun(context, number)
    Effect.objects.create(**effect(context, number))
    time.sleep(seconds)
    if context.attempt <= trips:
        raise Tripped
    return number


@task(
    queue_name="work", delivery="exactly_once", retry=AGAIN, max_deaths=DEATHS, takes_context=True
)
async def exactly_async(context: Any, number: int, seconds: float, trips: int) -> int:
    """Leave one effect, then take its time."""
    ledger.begun(context, number)
    await Effect.objects.acreate(**effect(context, number))
    await asyncio.sleep(seconds)
    if context.attempt <= trips:
        raise Tripped
    return number


KINDS = {"exactly": (exactly, 20), "exactly_async": (exactly_async, 10)}
