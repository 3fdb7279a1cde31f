"""Other processes that a measure needs, each begun anew: Django is set up there first."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any, Final

PATIENCE: Final = 30.0


class Other:
    """One such process, and the line to it."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, word: Any) -> None:
        """Tell it something."""
        self._line.send(word)

    def answer(self) -> Any:
        """Return what it tells next."""
        if not self._line.poll(PATIENCE):
            raise TimeoutError(f"Another process has not answered within {PATIENCE:.0f} s.")
        return self._line.recv()

    def end(self) -> None:
        """Let it end."""
        self._process.kill()
        self._process.join()


def wait_and_tell(line: Any, name: str) -> None:
    """Wait for a lock each time it is told to, and tell when it has it."""
    import django  # noqa: PLC0415 - a process of its own

    django.setup()
    from django_once.locks import lock  # noqa: PLC0415 - as above

    line.send("ready")
    while True:
        line.recv()
        with lock(name, wait=PATIENCE):
            line.send(time.monotonic())


def fire_from(line: Any) -> None:
    """Fire what is due from the moment on that it is told, until nothing is; tell when that was."""
    import django  # noqa: PLC0415 - a process of its own

    django.setup()
    from django_once.models import Schedule  # noqa: PLC0415 - as above
    from django_once.processes.scheduler import Scheduler  # noqa: PLC0415

    scheduler = Scheduler("default")
    scheduler.turn()
    line.send("ready")
    time.sleep(max(0.0, line.recv() - time.monotonic()))
    while Schedule.objects.filter(fired=0).exists():
        scheduler.turn()
    line.send(time.monotonic())
