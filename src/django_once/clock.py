"""Time: the database's for decisions, the monotonic clock for durations, and an offset for tests.

Every statement takes "now" from the database, because hosts disagree: a pod whose clock is a
minute ahead would take away leases that are still good. `offset()` is added to each of these; it
is zero but in tests, where `django_once.testing` moves it instead of waiting.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import DateTimeField, Func
from django.utils import timezone

from django_once.errors import InvalidOption, shortened

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_WRITTEN = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
LONGEST = timedelta(days=3660)

_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_offset = timedelta(0)


def offset() -> timedelta:
    """Return how far tests have moved the database's now; zero in production."""
    return _offset


def move(by: timedelta) -> None:
    """Add to the offset that every statement takes. For tests only."""
    global _offset
    _offset += by


def wall_microseconds() -> int:
    """Return microseconds since 1970 as this host has it, which no test moves: for ids."""
    return time.time_ns() // 1000


def host_microseconds() -> int:
    """Return microseconds since 1970 by this host's clock: good for order, never for decisions."""
    return wall_microseconds() + _offset // timedelta(microseconds=1)


def duration(value: object, name: str) -> timedelta:
    """Return a timedelta from one, from seconds, or from "90s", "5m", "1h30m", "7d"."""
    if isinstance(value, timedelta):
        length = value
    elif isinstance(value, bool):
        raise InvalidOption(f"{name} must be a duration such as '90s', got {shortened(value)}.")
    elif isinstance(value, (int, float)):
        # Asked so that NaN is refused too; an integer may be too large to become a float.
        if not abs(value) <= LONGEST.total_seconds():
            raise InvalidOption(f"{name} must be at most ten years, got {shortened(value)}.")
        length = timedelta(seconds=value)
    elif isinstance(value, str) and _WRITTEN.fullmatch(value.strip()):
        parts = _PART.findall(value.strip())
        if sum(float(number) * _UNITS[unit].total_seconds() for number, unit in parts) > 1e9:
            raise InvalidOption(f"{name} must be at most ten years, got {shortened(value)}.")
        length = sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta(0))
    else:
        raise InvalidOption(
            f"{name} must be a timedelta, seconds, or text such as '90s', '5m', '6h' or '7d', "
            f"got {shortened(value)}."
        )
    if length < timedelta(0):
        raise InvalidOption(f"{name} must not be negative, got {shortened(value)}.")
    if length > LONGEST:
        raise InvalidOption(f"{name} must be at most ten years, got {shortened(value)}.")
    return length


def from_database(moment: datetime | None) -> datetime | None:
    """Return a moment that came from a column of ours as Django's settings want it shown.

    Columns hold UTC, on every database. SQLite and MySQL return it without a zone.
    """
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def to_utc(moment: datetime) -> datetime:
    """Return a user's moment in UTC; without a zone it is in the project's, as Django says."""
    if moment.tzinfo is None:
        moment = timezone.make_aware(moment)
    return moment.astimezone(UTC)


def moment(value: datetime, name: str) -> datetime:
    """Return a user's moment in UTC; refuse one that some column or clock could not keep."""
    try:
        utc = to_utc(value)
    except OverflowError:
        utc = None
    if utc is None or not 1970 <= utc.year <= 9998:
        raise InvalidOption(f"{name} must be from 1970 to 9998, got {shortened(value)}.")
    return utc


def to_column(moment: datetime, vendor: str) -> Any:
    """Return a user's moment as a parameter for a column of ours, which holds UTC."""
    utc = to_utc(moment)
    if vendor == "postgresql":
        return utc
    if vendor == "sqlite":
        return utc.strftime("%Y-%m-%d %H:%M:%S.%f")
    return utc.replace(tzinfo=None)


class Now(Func):
    """The database's now, in UTC, moved by the offset of tests.

    Not Django's `Now`: that one is the session's local time on MySQL, and tests cannot move it.
    On PostgreSQL it is the statement's time, not `now()`, which stands still in a transaction.
    """

    template = "%(expression)s"
    output_field = DateTimeField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        """Return the expression of this vendor, without parameters."""
        return now_sql(connection.vendor).replace("%", "%%"), []


def now_sql(vendor: str) -> str:
    """Return the SQL text that is now on this kind of database; `%` stands unescaped."""
    seconds = _offset.total_seconds()
    if vendor == "postgresql":
        if not seconds:
            return "statement_timestamp()"
        return f"(statement_timestamp() + interval '{seconds:.6f} seconds')"
    if vendor == "sqlite":
        moved = f", '{seconds:+.6f} seconds'" if seconds else ""
        # As wide as a user's moment is written, so that they compare as texts.
        return f"strftime('%Y-%m-%d %H:%M:%f000', 'now'{moved})"
    if not seconds:
        return "utc_timestamp(6)"
    return f"(utc_timestamp(6) + interval {_offset // timedelta(microseconds=1)} microsecond)"


def host_now() -> datetime:
    """Return this host's now, moved by the offset of tests: to show people, never for decisions."""
    return datetime.fromtimestamp(host_microseconds() / 1_000_000, UTC)


def unmoved_host_now() -> datetime:
    """Return this host's now as it is, to compare it with that of a database."""
    return datetime.fromtimestamp(time.time(), UTC)


def uptime() -> float:
    """Return seconds by a clock that nobody sets, and that counts the time a machine sleeps.

    Leases are trusted by it: Python's monotonic clock stands still while a laptop or a virtual
    machine is suspended, and the database's does not.
    """
    return time.clock_gettime(_UPTIME)
