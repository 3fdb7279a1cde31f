"""Bodies that work under a named lock, on a resource outside the database that compares fences."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from django.conf import settings

from chaos.project.work import ledger
from chaos.project.work.exactly import AGAIN, DEATHS
from django_once import task
from django_once.locks import lock

NAMES = 10


@task(queue_name="work", retry=AGAIN, max_deaths=DEATHS, takes_context=True)
def locked(context: Any, number: int, seconds: float, trips: int) -> None:
    """Write at the begin and at the end of what was done under the lock."""
    ledger.begun(context, number)
    name = f"chaos-{number % NAMES}"
    with lock(name, lease=settings.LEASE, wait=settings.LEASE) as held:
        write(name, held.fence, context.job_id)
        time.sleep(min(seconds, 0.2))
        write(name, held.fence, context.job_id)


def write(name: str, fence: int, job: str) -> None:
    """Let the resource take a write, unless it has seen a higher fence."""
    with Path(f"{settings.LEDGER}.{name}").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        highest = max((int(line) for line in file), default=0)
        if fence < highest:
            ledger.write("refused", name=name, fence=fence, job=job)
            return
        ledger.write("accepted", name=name, fence=fence, job=job)
        os.write(file.fileno(), f"{fence}\n".encode())


KINDS = {"locked": (locked, 10)}
