"""Moments as people type them: how long ago, or when."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from django.core.management.base import CommandError
from django.utils.dateparse import parse_date, parse_datetime

from django_once import clock
from django_once.errors import InvalidOption
from django_once.management.places import USAGE


def since_when(text: str, now: datetime) -> datetime:
    """Return the moment that "24h" (ago), "2026-11-01" or "2026-11-01T12:00Z" means, in UTC."""
    moment = _moment(text)
    return moment if moment is not None else now - _length(text)


def until_when(text: str, now: datetime) -> datetime:
    """Return the moment that "2h" (from now on), a date or a date with a time means, in UTC."""
    moment = _moment(text)
    return moment if moment is not None else now + _length(text)


def _moment(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
        day = None if found is not None else parse_date(text)
    except ValueError:
        return None
    if day is not None:
        found = datetime.combine(day, time())
    return None if found is None else clock.to_utc(found)


def _length(text: str) -> timedelta:
    try:
        return clock.duration(text, "The time")
    except InvalidOption as error:
        raise CommandError(
            f"{text!r} is no moment: write a length of time, as in 24h, or when, as in "
            "2026-11-01T12:00Z.",
            returncode=USAGE,
        ) from error
