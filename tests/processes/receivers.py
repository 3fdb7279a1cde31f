"""Receivers of Django's signals that misbehave in every way, in workers that are told to."""

from __future__ import annotations

import sys
from typing import Any

from django.dispatch import Signal

from django_once import signals
from django_once.compat import task_finished, task_started
from tests.processes import ledger


def write_down(task_result: Any, **_: Any) -> None:
    ledger.write(f"heard-{task_result.status.value}", task_result.id)


def raise_an_error(**_: Any) -> None:
    raise ValueError("A receiver raised.")


def leave(**_: Any) -> None:
    sys.exit(3)


def raise_below_exception(**_: Any) -> None:
    raise BaseException("A receiver raised below Exception.")


for signal in (task_started, task_finished):
    for receiver in (write_down, raise_an_error, leave, raise_below_exception):
        signal.connect(receiver)

for own in vars(signals).values():
    if isinstance(own, Signal):
        for receiver in (raise_an_error, leave, raise_below_exception):
            own.connect(receiver)
