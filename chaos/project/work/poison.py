"""Bodies that kill their process whenever they run: after two deaths they are over."""

from __future__ import annotations

import os
import signal
from typing import Any

from chaos.project.work import ledger
from django_once import task

DEATHS = 2


@task(queue_name="work", max_deaths=DEATHS, takes_context=True)
def poison(context: Any, number: int, seconds: float, trips: int) -> None:
    """End this process, and all that runs in it."""
    ledger.begun(context, number)
    os.kill(os.getpid(), signal.SIGKILL)


KINDS = {"poison": (poison, 0.1)}
