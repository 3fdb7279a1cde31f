"""Which stored notifications this process handles, by the filter that its settings name.

    OPTIONS = {"LISTENER_FILTER": "shop.listening.ThisRelease"}

What the filter does not match goes back, uncounted, and is offered again: to a process with another
filter, or to this one when the row has changed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.module_loading import import_string

from django_once import compat
from django_once.definitions.ends import Snooze
from django_once.errors import InvalidOption, shortened

OFFERED_AGAIN: Final = timedelta(seconds=5)


def provider(alias: str) -> Any:
    """Return what LISTENER_FILTER of a backend names, made, or None."""
    backend: Any = compat.task_backends[alias] if alias in compat.task_backends.settings else None
    said = getattr(getattr(backend, "settings", None), "listener_filter", None)
    if isinstance(said, str):
        try:
            said = import_string(said)
        except ImportError as error:
            raise InvalidOption(
                f"LISTENER_FILTER of TASKS[{alias!r}] names {said!r}, which cannot be imported: "
                f"{error}."
            ) from error
    return said() if isinstance(said, type) else said


def is_set(alias: str) -> bool:
    """Return whether a backend names a filter."""
    backend: Any = compat.task_backends[alias] if alias in compat.task_backends.settings else None
    return getattr(getattr(backend, "settings", None), "listener_filter", None) is not None


def refuse_others(alias: str, job: str) -> None:
    """Give a notification back that the filter does not match."""
    from django_once.models.notification import is_among

    condition = provider(alias).get_filter()
    if not isinstance(condition, Q):
        raise InvalidOption(f"get_filter() must return a Q, got {shortened(condition)}.")
    backend: Any = compat.task_backends[alias]
    if not is_among(backend.database, UUID(job), condition):
        raise Snooze(OFFERED_AGAIN)
