"""Series that go on by themselves, and are replaced now and then while they do."""

from __future__ import annotations

import random
import time
from typing import Any

from chaos.project.work import ledger
from chaos.project.work.exactly import AGAIN, DEATHS
from django_once import perpetual, task

SERIES = 8


@perpetual(every="400ms", key="series-{number}")
@task(queue_name="work", retry=AGAIN, max_deaths=DEATHS, takes_context=True)
def tick(context: Any, number: int) -> None:
    """Take a moment; the next one is named in the transaction that ends this one."""
    ledger.begun(context, number)
    time.sleep(0.01)


def begin() -> None:
    """Begin the series that have never begun."""
    for number in range(SERIES):
        tick.add(number)


def stir(dice: random.Random) -> None:
    """Begin a new generation of one of them, whatever happens to the present one."""
    tick.replace(dice.randrange(SERIES))
