"""Perpetual: a task whose every job names the next one, whatever becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django_once import clock
from django_once.errors import InvalidOption, shortened

SHORTEST: Final = timedelta(milliseconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perpetual:
    """How a task goes on: each of its jobs names the next, so much later."""

    every: timedelta
    automatic: bool = False


def checked(every: object, automatic: object) -> Perpetual:
    """Return how a task goes on; refuse what cannot be meant."""
    length = clock.duration(every, "perpetual(every=…)")
    if length < SHORTEST:
        raise InvalidOption(
            f"perpetual(every=…) must be at least {SHORTEST.total_seconds():g} s, got "
            f"{shortened(every)}: a job that comes back at once would keep a worker busy for ever."
        )
    if not isinstance(automatic, bool):
        raise InvalidOption(f"perpetual(automatic=…) is True or False, got {shortened(automatic)}.")
    return Perpetual(every=length, automatic=automatic)
