"""Bodies that say in the ledger what they did, wait for a gate, or misbehave."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from typing import Any

from django_once import Retry, perpetual, task
from tests.app.models import Note
from tests.processes import ledger

STEP = 0.005


def wait_for(gate: str) -> None:
    while not os.path.exists(gate):
        time.sleep(STEP)


@task
def mark(tag: str) -> str:
    ledger.write("ran", tag)
    return tag


@task
async def mark_later(tag: str) -> str:
    ledger.write("ran", tag)
    return tag


@task(takes_context=True)
def mark_attempt(context: Any, tag: str) -> list[int]:
    ledger.write("ran", tag)
    return [context.attempt, context.fence]


@task
def hold(tag: str, gate: str) -> str:
    ledger.write("began", tag)
    wait_for(gate)
    ledger.write("ran", tag)
    return tag


@task
async def hold_later(tag: str, gate: str) -> str:
    ledger.write("began", tag)
    while not os.path.exists(gate):
        await asyncio.sleep(STEP)
    ledger.write("ran", tag)
    return tag


@task
async def note_later(tag: str) -> None:
    await Note.objects.acreate(text=tag)
    ledger.write("ran", tag)


@task
def chain(tag: str, left: int) -> None:
    ledger.write("ran", f"{tag}-{left}")
    if left:
        chain.enqueue(tag, left - 1)


@task
def note(tag: str) -> None:
    Note.objects.create(text=tag)
    ledger.write("ran", tag)


@task(retry=Retry(max_attempts=20, base="10ms", cap="100ms"))
def note_stubbornly(tag: str) -> None:
    Note.objects.create(text=tag)
    ledger.write("ran", tag)


@task(delivery="exactly_once")
def note_once(tag: str) -> str:
    ledger.write("began", tag)
    Note.objects.create(text=tag)
    return tag


@task(delivery="exactly_once")
def note_once_and_hold(tag: str, gate: str) -> None:
    Note.objects.create(text=tag)
    ledger.write("began", tag)
    wait_for(gate)


@task(delivery="at_most_once")
def hold_at_most_once(tag: str, gate: str) -> None:
    ledger.write("began", tag)
    wait_for(gate)
    ledger.write("ran", tag)


@task
def nothing(n: int) -> int:
    return n


@task
async def nothing_later(n: int) -> int:
    return n


@task
def fail(n: int) -> None:
    raise ValueError(n)


@task(delivery="at_most_once")
def mark_at_most_once(tag: str) -> None:
    ledger.write("ran", tag)


@task(timeout="0.5s")
def hang(tag: str) -> None:
    ledger.write("began", tag)
    threading.Event().wait()


@task(timeout="0.5s")
async def hang_later(tag: str) -> None:
    ledger.write("began", tag)
    await asyncio.Event().wait()


@task(timeout="0.5s", retry=Retry(max_attempts=2, base="10ms", cap="10ms"))
def hang_twice(tag: str) -> None:
    ledger.write("began", tag)
    threading.Event().wait()


def hold_everything(seconds: float) -> None:
    """Sleep in C without giving up the interpreter's lock: no other thread runs meanwhile."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@task
def hog(tag: str, seconds: float) -> None:
    ledger.write("began", tag)
    hold_everything(seconds)
    ledger.write("ran", tag)


@task(timeout="0.5s")
def hog_too_long(tag: str) -> None:
    ledger.write("began", tag)
    hold_everything(20)


@task
def wedge(tag: str, seconds: float) -> None:
    """End well, and leave the process behind without the interpreter's lock."""
    ledger.write("ran", tag)
    threading.Timer(0.5, hold_everything, [seconds]).start()


def exit_at_once() -> None:
    os._exit(7)


def read_nowhere() -> None:
    ctypes.string_at(0)


def kill_own_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


WAYS = {"exit": exit_at_once, "segfault": read_nowhere, "memory": kill_own_process}


@task(max_deaths=1)
def die(tag: str, how: str) -> None:
    ledger.write("began", tag)
    WAYS[how]()


@task
def die_at_first(tag: str, how: str) -> None:
    ledger.write("began", tag)
    if ledger.Ledger.of_this_process().count("began", tag) == 1:
        WAYS[how]()
    ledger.write("ran", tag)


@task
def swallow(tag: str, megabytes: int) -> None:
    HELD.append(bytearray(os.urandom(1) * megabytes * 2**20))
    ledger.write("ran", tag)


HELD: list[bytearray] = []


@perpetual(every="200ms", key="beat:{name}")
@task(takes_context=True, max_deaths=0)
def beat(context: Any, name: str, dies_at: int = 0) -> None:
    """One beat of a series; one generation of it kills its process."""
    generation = context.task_result.generation
    ledger.write("ran", f"{name}-{generation}")
    if generation == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)


@perpetual(every="1s", key="tick:{name}")
@task
def tick(name: str) -> None:
    """One moment of a series; its row says which."""


@perpetual(every="1h", key="slow")
@task(takes_context=True)
def beat_slowly(context: Any, gate: str) -> None:
    ledger.write("began", "slow")
    while not os.path.exists(gate) and not context.should_stop:
        time.sleep(STEP)
    context.reschedule(gate, after="2h")
    ledger.write("asked" if context.should_stop else "ran", "slow")


@task(takes_context=True)
def tell(context: Any, gate: str) -> None:
    context.progress(3, 10, "three of ten")
    ledger.write("began", "tell")
    wait_for(gate)
