"""Tasks with keys, as small as their tests allow."""

from __future__ import annotations

from typing import Any

from django_once import Cancel, Retry, perpetual, task
from tests.app.models import Note


@task(key="poll:{pool}")
def poll(pool: int, shard: str = "a") -> int:
    return pool


@task
def plain(pool: int) -> int:
    return pool


@perpetual(every="10s", key="tick:{name}")
@task(takes_context=True)
def tick(context: Any, name: str, say: str = "") -> str:
    match say:
        case "soon":
            context.reschedule(after="1s")
        case "with":
            context.reschedule(name, "stop", after="1s")
        case "stop":
            context.stop()
        case "fail":
            raise ValueError(name)
        case "cancel":
            raise Cancel("enough")
        case "other":
            context.reschedule("other", after="1s")
    return f"{name} {context.key}"


@task
@perpetual(every="1m")
async def below() -> None: ...


@perpetual(every="1m", automatic=True)
@task
def heartbeat() -> None: ...


@perpetual(every="10s", key="once")
@task(delivery="exactly_once", takes_context=True)
def tick_once(context: Any) -> int:
    return int(context.attempt)


@task(takes_context=True, retry=Retry(max_attempts=3, base="1s", jitter=0))
def order(context: Any, log: str) -> list[Any]:
    """Reserve once, however often it is tried; fail until it is."""
    with context.step("reserve") as step:
        if not step.is_done:
            step.result = {"seat": context.attempt}
    Note.objects.create(text=f"{log} {step.is_done} {step.result['seat']}")
    if context.attempt < 3:
        raise ValueError("again")
    return [step.result["seat"], context.attempt]


@task(takes_context=True)
async def order_async(context: Any) -> int:
    async with context.step("reserve") as step:
        step.result = 7
    context.progress(1, 2, "half")
    return int(step.result)


@task(takes_context=True)
def twice(context: Any) -> None:
    with context.step("a"):
        pass
    with context.step("a"):
        pass


@task(takes_context=True)
def count(context: Any, lines: int) -> None:
    for done in range(1, lines + 1):
        context.progress(done, lines, f"{done} of {lines} lines")
