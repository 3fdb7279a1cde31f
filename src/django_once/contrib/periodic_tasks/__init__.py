"""The names of django-periodic-tasks, for a move in small steps.

    from django_once.contrib.periodic_tasks import exactly_once, scheduled_task

Add `django_once.contrib.periodic_tasks` to INSTALLED_APPS for `manage.py run_scheduler`. The
defaults are theirs (a cron expression is read in UTC); what happens is ours, and the guide says
where that differs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_once.contrib.periodic_tasks.names import compute_next_run_at as compute_next_run_at
    from django_once.contrib.periodic_tasks.names import scheduled_task as scheduled_task
    from django_once.contrib.periodic_tasks.names import (
        validate_cron_expression as validate_cron_expression,
    )
    from django_once.once import exactly_once as exactly_once

_NAMES = "django_once.contrib.periodic_tasks.names"
_PLACES = {
    "compute_next_run_at": _NAMES,
    "exactly_once": "django_once.once",
    "scheduled_task": _NAMES,
    "validate_cron_expression": _NAMES,
}

__all__ = ["compute_next_run_at", "exactly_once", "scheduled_task", "validate_cron_expression"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
