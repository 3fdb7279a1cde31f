"""What a supervisor decides about a worker that it only sees: nothing, a warning, or its end.

A body that runs past its timeout is given a moment, since an async one is being cancelled and may
still end by itself. Its worker is condemned meanwhile: it claims nothing and hands back what has
not started, so that siblings that are short end well and nothing else is in the way. Then the
process is killed; nothing less ends a thread.

A worker that gives no sign of life while no body runs is wedged, and is ended too. One that is
silent because a body holds the interpreter is not: the keeper renews it, and relieves it of what
waits behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django_once.processes.board import Started

# How long a body may run past its timeout until its worker is condemned, and until it is killed.
NOTICE: Final = 0.1
GRACE: Final = 0.6
# How long a worker without a body may be silent, at the least.
SILENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done about a worker."""

    is_condemned: bool = False
    reason: str = ""
    overran: tuple[Started, ...] = ()

    @property
    def is_death(self) -> bool:
        """Whether the worker must be killed now."""
        return bool(self.reason)


def verdict(started: Sequence[Started], seen_at: float, now: float, lease: float) -> Verdict:
    """Return what is to be done about a worker with these bodies, last seen at that uptime."""
    late = tuple(body for body in started if body.over_at and now >= body.over_at + NOTICE)
    if any(now >= body.over_at + GRACE for body in late):
        return Verdict(True, "was killed because a body ran past its timeout", late)
    if not started and now - seen_at > silence(lease):
        return Verdict(False, f"was killed after {now - seen_at:.0f} s without a sign of life")
    return Verdict(bool(late))


def next_look(started: Sequence[Started], now: float) -> float:
    """Return in how many seconds a verdict about these bodies may change."""
    moments = [
        body.over_at + step
        for body in started
        if body.over_at
        for step in (NOTICE, GRACE)
        if body.over_at + step > now
    ]
    return min(moments, default=now + SILENCE) - now


def silence(lease: float) -> float:
    """Return how many seconds without a sign of life mean that a process is wedged."""
    return max(SILENCE, lease / 2)
