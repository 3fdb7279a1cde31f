"""A supervisor with its keeper and one worker, forked for the time of a measure."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django_once.backend import DatabaseBackend
from django_once.processes import child
from django_once.processes.plan import Plan
from django_once.processes.supervisor import Supervisor

SECONDS_TO_STOP: Final = 15.0


@contextmanager
def workers(backend: DatabaseBackend) -> Iterator[None]:
    """Run jobs of a backend meanwhile, as `once worker` does."""
    plan = Plan(backend=backend.alias, worker_id="once-bench", scheduler=False)
    pid = child.fork(lambda: _supervise(plan, backend))
    try:
        yield
    finally:
        child.send(pid, signal.SIGTERM)
        _await_end(pid)


def _supervise(plan: Plan, backend: DatabaseBackend) -> int:
    # What a supervisor says is for whoever started one.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Supervisor(plan, backend).run()


def _await_end(pid: int) -> None:
    until = time.monotonic() + SECONDS_TO_STOP
    while not child.has_ended(pid):
        if time.monotonic() > until:
            child.send(pid, signal.SIGKILL)
        time.sleep(0.01)
