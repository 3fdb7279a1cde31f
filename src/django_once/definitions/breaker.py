"""`Breaker`: after so many failures a task is let rest, and then tried with one job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django_once import clock
from django_once.definitions.limit import check_count
from django_once.errors import InvalidOption, shortened

MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Opens when so many attempts of a task have failed within a time; then its jobs wait.

    With `share` they must also be at least that part of its attempts. When it was open for
    `reopen`, one job is let through: if that succeeds all go on, if it fails all wait once more.
    """

    failures: int = 5
    within: timedelta | float | str = "1m"
    reopen: timedelta | float | str = "30s"
    share: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could never open, or would always be open."""
        check_count(self.failures, "failures of a Breaker", MOST)
        for name in ("within", "reopen"):
            object.__setattr__(self, name, _length(getattr(self, name), f"Breaker({name}=…)"))
        if self.share is not None:
            check_share(self.share, "Breaker(share=…)")


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """At most this share of a task's attempts within a time may be retries.

    `least` are always allowed. What would be one more waits until there is room, or ends with
    `beyond="end"`.
    """

    share: float = 0.2
    within: timedelta | float | str = "1m"
    least: int = 10
    beyond: str = "wait"

    def __post_init__(self) -> None:
        """Refuse a budget that lets nothing through, or everything."""
        check_share(self.share, "RetryBudget(share=…)")
        object.__setattr__(self, "within", _length(self.within, "RetryBudget(within=…)"))
        check_count(self.least, "least of a RetryBudget", MOST)
        if self.beyond not in BEYOND:
            raise InvalidOption(
                f"RetryBudget(beyond=…) must be one of {', '.join(BEYOND)}, got "
                f"{shortened(self.beyond)}."
            )


WAIT: Final = "wait"
END: Final = "end"
BEYOND: Final = (WAIT, END)


def check_share(value: Any, name: str) -> None:
    """Refuse what is no part of a whole."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1:
        raise InvalidOption(f"{name} must be above 0 and at most 1, got {shortened(value)}.")


def _length(value: Any, name: str) -> timedelta:
    length = clock.duration(value, name)
    if not length:
        raise InvalidOption(f"{name} must be longer than nothing.")
    return length
