"""`Limit`: how many jobs of a key may hold a slot at once, and how many may begin in a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django_once import clock
from django_once.definitions import template
from django_once.errors import InvalidOption, shortened

MOST: Final = 1_000_000

_RATE = re.compile(r"(\d+)\s*/\s*(\d*(?:\.\d+)?)\s*(ms|[smhdw])")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many jobs of this key at once, and at most so many beginning in a time.

    `key` may have places for arguments: "tenant:{tenant_id}" limits each tenant by itself. `rate`
    is written "30/m", "5/s" or "100/15m". After a pause as many as `burst` may begin together.
    """

    key: str
    concurrency: int | None = None
    rate: str | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that nothing could pass, or that limits nothing."""
        template.checked(self.key, "The key of a Limit")
        if self.concurrency is None and self.rate is None:
            raise InvalidOption(f"Limit({self.key!r}) limits nothing: say concurrency= or rate=.")
        for name in ("concurrency", "burst"):
            value = getattr(self, name)
            if value is not None:
                check_count(value, f"{name} of a Limit", MOST)
        if self.burst is not None and self.rate is None:
            raise InvalidOption("burst says how many of a rate may begin together: say rate=, too.")
        if self.rate is not None:
            _ = self.interval

    @property
    def interval(self) -> float | None:
        """The seconds between two beginnings, when the rate is used up."""
        if self.rate is None:
            return None
        written = _RATE.fullmatch(self.rate.strip()) if isinstance(self.rate, str) else None
        if written is None:
            raise InvalidOption(
                f"rate must be jobs per time such as '30/m', '5/s' or '100/15m', got "
                f"{shortened(self.rate)}."
            )
        count, number, unit = int(written[1]), written[2] or "1", written[3]
        length = clock.duration(f"{number}{unit}", "The time of a rate").total_seconds()
        if not count or not length:
            raise InvalidOption(f"rate must let something begin, got {self.rate!r}.")
        return length / count

    @property
    def rule(self) -> dict[str, Any]:
        """What a job's row says of its limit, for those who do not have its code."""
        said: dict[str, Any] = {}
        if self.concurrency is not None:
            said["concurrency"] = self.concurrency
        if self.interval is not None:
            said["interval"] = self.interval
            said["burst"] = self.burst or 1
        return said


def check_count(value: Any, name: str, most: int) -> None:
    """Refuse what is no whole number of something."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidOption(
            f"{name} must be a whole number from 1 to {most:,}, got {shortened(value)}."
        )
