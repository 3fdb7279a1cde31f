"""`scheduled_task` and the cron functions, as django-periodic-tasks calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django_once import clock, schedules
from django_once.definitions import schedule
from django_once.errors import InvalidOption, shortened


def scheduled_task(
    *,
    cron: str,
    name: str | None = None,
    timezone: str = "UTC",
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    backend: str | None = None,
    **said: Any,
) -> Any:
    """Declare a schedule as there; the words of `django_once.scheduled_task` may be said too."""
    _refuse_seconds(cron)
    return schedules.scheduled_task(
        cron=cron,
        name=name,
        timezone=timezone,
        args=args,
        kwargs=kwargs,
        queue_name=queue_name,
        priority=priority,
        backend=backend,
        **said,
    )


def validate_cron_expression(expression: str) -> bool:
    """Return whether an expression can be meant."""
    try:
        _refuse_seconds(expression)
        schedule.rule("", cron=expression)
    except InvalidOption:
        return False
    return True


def compute_next_run_at(
    cron: str, timezone_name: str = "UTC", base_time: datetime | None = None
) -> datetime:
    """Return the first due moment after a time, in UTC; ValueError for what cannot be meant."""
    _refuse_seconds(cron)
    base = clock.host_now() if base_time is None else clock.to_utc(base_time)
    try:
        schedule.zone(timezone_name)
    except InvalidOption as error:
        # Whoever caught theirs may look for its first words.
        raise InvalidOption(f"Invalid timezone: {error}") from error
    moment = schedule.rule("", cron=cron, timezone=timezone_name).after(base)
    if moment is None:
        raise InvalidOption(f"cron {shortened(cron)} names no moment within five years.")
    return moment


def _refuse_seconds(cron: object) -> None:
    """Refuse six fields: there the seconds stand at the end, here in front."""
    if isinstance(cron, str) and len(cron.split()) > 5:
        raise InvalidOption(
            f"cron {shortened(cron)} has more than five fields. There, the seconds stood at the "
            "end; use django_once.scheduled_task, and write them in front."
        )
