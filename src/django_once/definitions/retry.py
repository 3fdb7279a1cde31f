"""From an error and a number of failures to "again, then" or "no more"."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django_once import clock
from django_once.errors import InvalidOption

MOST_ATTEMPTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how late a task that raised is tried again.

    The n-th wait is `base * factor ** (n - 1)`, at most `cap`: the curve. Each wait is then moved
    by up to `jitter`, a fraction of it, either way, so that jobs that failed together do not come
    back together. Only exceptions in `on` are tried again, and none in `give_up_on`. A body that
    ran into its timeout raised `TimedOut`, which is a `TimeoutError`.
    """

    max_attempts: int = 5
    base: timedelta | float | str = "5s"
    factor: float = 2.0
    cap: timedelta | float | str = "1h"
    jitter: float = 0.05
    on: tuple[type[BaseException], ...] = (Exception,)
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        attempts = self.max_attempts
        if not isinstance(attempts, int) or isinstance(attempts, bool):
            raise InvalidOption(f"Retry(max_attempts=…) must be a whole number, got {attempts!r}.")
        if not 1 <= attempts <= MOST_ATTEMPTS:
            raise InvalidOption(
                f"Retry(max_attempts=…) must be from 1 to {MOST_ATTEMPTS}, got {attempts!r}."
            )
        if not isinstance(self.factor, (int, float)) or not 1 <= self.factor <= 100:
            raise InvalidOption(f"Retry(factor=…) must be from 1 to 100, got {self.factor!r}.")
        if not isinstance(self.jitter, (int, float)) or not 0 <= self.jitter <= 1:
            raise InvalidOption(f"Retry(jitter=…) must be from 0 to 1, got {self.jitter!r}.")
        object.__setattr__(self, "base", clock.duration(self.base, "Retry(base=…)"))
        object.__setattr__(self, "cap", clock.duration(self.cap, "Retry(cap=…)"))
        if _length(self.base) > _length(self.cap):
            raise InvalidOption(
                f"Retry(base=…) must not be longer than its cap of {self.cap}, which would shorten "
                f"every wait, got {self.base}."
            )
        object.__setattr__(self, "on", _classes(self.on, "on"))
        object.__setattr__(self, "give_up_on", _classes(self.give_up_on, "give_up_on"))

    def delay(self, failures: int) -> timedelta:
        """Return how long to wait after so many failures, before jitter."""
        base, cap = _length(self.base), _length(self.cap)
        # The power is bounded, since a float overflows long before a thousand attempts are over.
        seconds = base.total_seconds() * self.factor ** min(failures - 1, 64)
        return min(timedelta(seconds=min(seconds, cap.total_seconds())), cap)

    def decide(self, exception: BaseException, failures: int) -> timedelta | None:
        """Return when to try again after this failure, or None for no more."""
        if failures >= self.max_attempts:
            return None
        if isinstance(exception, self.give_up_on) or not isinstance(exception, self.on):
            return None
        return self.delay(failures) * (1 + random.uniform(-self.jitter, self.jitter))


def _length(value: Any) -> timedelta:
    assert isinstance(value, timedelta)
    return value


def _classes(value: Any, name: str) -> tuple[type[BaseException], ...]:
    classes = value if isinstance(value, (tuple, list)) else (value,)
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise InvalidOption(f"Retry({name}=…) must name exception classes, got {kind!r}.")
    if name == "on" and not classes:
        raise InvalidOption("Retry(on=…) must name an exception class to try again for, got ().")
    return tuple(classes)
