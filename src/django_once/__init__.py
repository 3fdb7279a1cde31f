"""Exactly-once background work for Django, on the database you already have.

The public names are loaded on first use, so importing the package loads no model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_once.declare import task as task
    from django_once.definitions.breaker import Breaker as Breaker
    from django_once.definitions.breaker import RetryBudget as RetryBudget
    from django_once.definitions.ends import Cancel as Cancel
    from django_once.definitions.ends import Snooze as Snooze
    from django_once.definitions.limit import Limit as Limit
    from django_once.definitions.retry import Retry as Retry
    from django_once.definitions.unique import Unique as Unique
    from django_once.once import exactly_once as exactly_once
    from django_once.repeating import perpetual as perpetual
    from django_once.schedules import scheduled_task as scheduled_task

__version__ = "0.1.0"

_PLACES = {
    "task": "django_once.declare",
    "Breaker": "django_once.definitions.breaker",
    "Cancel": "django_once.definitions.ends",
    "Limit": "django_once.definitions.limit",
    "Retry": "django_once.definitions.retry",
    "RetryBudget": "django_once.definitions.breaker",
    "Snooze": "django_once.definitions.ends",
    "Unique": "django_once.definitions.unique",
    "exactly_once": "django_once.once",
    "perpetual": "django_once.repeating",
    "scheduled_task": "django_once.schedules",
}

__all__ = [
    "Breaker",
    "Cancel",
    "Limit",
    "Retry",
    "RetryBudget",
    "Snooze",
    "Unique",
    "__version__",
    "exactly_once",
    "perpetual",
    "scheduled_task",
    "task",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
