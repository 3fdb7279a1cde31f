"""Bodies of the survival tests: those that are asked to end, and those that leave a mess."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import resource
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django_once import Retry, task
from tests.app.models import Note
from tests.processes import ledger

STEP = 0.005


@task(takes_context=True)
def go_on_until_told(context: Any, tag: str) -> None:
    ledger.write("began", tag)
    while not context.should_stop:
        time.sleep(STEP)
    ledger.write("told", tag)
    context.check()


@task
async def go_on_until_cancelled(tag: str) -> None:
    ledger.write("began", tag)
    try:
        await asyncio.Event().wait()
    finally:
        ledger.write("told", tag)


@task
async def go_on_and_catch(tag: str) -> str:
    ledger.write("began", tag)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ledger.write("told", tag)
    return tag


@task(takes_context=True)
def succeed_when_told(context: Any, tag: str) -> str:
    ledger.write("began", tag)
    while not context.should_stop:
        time.sleep(STEP)
    ledger.write("told", tag)
    return tag


@task(delivery="exactly_once")
def hold_once(tag: str, gate: str) -> str:
    Note.objects.create(text=tag)
    ledger.write("began", tag)
    while not os.path.exists(gate):
        time.sleep(STEP)
    return tag


@task(delivery="exactly_once", timeout="2s")
def hold_briefly_once(tag: str) -> None:
    """Write, and go on for a moment: a host is paused in the middle."""
    Note.objects.create(text=tag)
    ledger.write("began", tag)
    time.sleep(1.5)


@task
def kill_everybody_at_first(tag: str) -> None:
    """End the supervisor, the keeper and this process together, as the end of a host does."""
    ledger.write("began", tag)
    if ledger.Ledger.of_this_process().count("began", tag) > 1:
        return
    supervisor = os.getppid()
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    for pid in (supervisor, *(int(child) for child in children if int(child) != os.getpid())):
        os.kill(pid, signal.SIGSTOP)
    for pid in (supervisor, *map(int, children)):
        os.kill(pid, signal.SIGKILL)


@task(retry=Retry(max_attempts=4, base="400ms", factor=2, cap="10s"))
def fail_with_pauses(tag: str) -> None:
    ledger.write("ran", tag)
    raise ValueError(tag)


@task(retry=Retry(max_attempts=3, base="60s", jitter=0.05))
def fail_with_the_others(n: int) -> None:
    raise ValueError(n)


def exit_by_signal() -> None:
    ctypes.string_at(0)


def use_up_the_processor() -> None:
    """Meet a limit of resources that the kernel enforces by a signal, as it does for memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    while True:
        pass


FATAL = {
    "segfault": (exit_by_signal, "SIGSEGV"),
    "exit": (lambda: os._exit(7), "status 7"),
    "limit": (use_up_the_processor, "SIGKILL"),
    "abort": (os.abort, "SIGABRT"),
}


@task(max_deaths=1)
def die_always(tag: str, how: str) -> None:
    ledger.write("began", tag)
    FATAL[how][0]()


@task
def ask_for_too_much(tag: str) -> None:
    """Meet a limit of memory, inside which Python raises: no death."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + 2**26, before[1]))
    try:
        bytearray(2**30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def search_in_vain() -> None:
    """Search for years in C, without giving up the interpreter."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def raise_to_a_power() -> None:
    pow(3, 3**17)


HANGS = {"search": search_in_vain, "power": raise_to_a_power, "event": threading.Event().wait}


@task(timeout="0.5s")
def hang_in(tag: str, where: str) -> None:
    ledger.write("began", tag)
    HANGS[where]()


@task(timeout="0.5s")
async def hang_in_a_loop(tag: str, where: str) -> None:
    ledger.write("began", tag)
    HANGS[where]()


@task(timeout="0.5s")
async def refuse_to_end(tag: str, where: str) -> None:
    """Await for ever, whatever it is asked."""
    ledger.write("began", tag)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
