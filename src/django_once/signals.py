"""Our signals beside Django's three: what becomes of attempts, schedules and workers in between.

Each carries plain values, so that to send one asks no database. A receiver that raises is told in
the log and changes nothing; where nobody listens nothing is done.
"""

from __future__ import annotations

import logging
from threading import current_thread, main_thread
from typing import Any, Final

from django.dispatch import Signal

# With job, task, queue, attempt, fence and reason; retried and snoozed with delay, in seconds.
task_retried = Signal()
task_snoozed = Signal()
task_released = Signal()
# With job and attempt: its outcome was dropped, since somebody else had ended it.
task_superseded = Signal()
# With job, task, worker, status and reason: it was taken from a worker that is gone.
task_swept = Signal()
# With schedule and due_at; skipped with reason.
schedule_fired = Signal()
schedule_skipped = Signal()
# With worker, its id, and name; lost with worker alone.
worker_started = Signal()
worker_stopped = Signal()
worker_lost = Signal()

_RETURNS: Final = (task_retried, task_snoozed, task_released)


def returns_are_heard() -> bool:
    """Return whether anybody listens to attempts that end and whose job comes back."""
    return any(signal.receivers for signal in _RETURNS)


def tell(signal: Signal, sender: Any, **fields: Any) -> None:
    """Send a signal to whoever listens; no receiver can end who sends it."""
    if not signal.receivers:
        return
    try:
        answers: list[Any] = signal.send_robust(sender, **fields)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise
        answers = [("unknown", error)]
    report(answers)


def report(answers: Any) -> None:
    """Tell in the log of the receivers that raised."""
    ours = logging.getLogger("django_once")
    for receiver, answer in answers:
        if isinstance(answer, BaseException):
            ours.error(
                "signal.failed receiver=%r: a receiver raised; the job goes on.",
                receiver,
                exc_info=answer,
            )
