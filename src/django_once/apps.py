"""The Django app: its label is `once`; every app's `tasks` and `listeners` are loaded with it."""

from __future__ import annotations

import sys
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import autodiscover_modules


class OnceConfig(AppConfig):
    """Loads the declarations of all apps; starts no thread, asks no database."""

    name = "django_once"
    label = "once"
    verbose_name = "Background work"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the checks, and the tasks and listeners that a worker must know."""
        from django_once import checks  # noqa: F401, PLC0415 - registers them

        autodiscover_modules("tasks", "listeners")
        pre_migrate.connect(_make_way, sender=self, dispatch_uid="django_once.channels")
        post_migrate.connect(_follow, sender=self, dispatch_uid="django_once.channels")
        if "django_once.channels" in sys.modules:
            _hear_channels()
        post_migrate.connect(_write_down, sender=self, dispatch_uid="django_once.declarations")


def _write_down(sender: Any, using: str, **kwargs: Any) -> None:
    """Let SQL know the tasks of this release, after every migrate."""
    from django_once.declarations import migrated  # noqa: PLC0415 - it loads models

    migrated(using)


def _hear_channels() -> None:
    """Load the checks of channels, and let this process handle what they store."""
    from django_once import channel_checks  # noqa: F401, PLC0415 - registers them
    from django_once.channels.handling import declare_tasks  # noqa: PLC0415 - it is loaded

    declare_tasks()


def _make_way(sender: Any, using: str, **kwargs: Any) -> None:
    """Take triggers away before a `migrate` that would stumble over them."""
    if "django_once.channels" in sys.modules:
        from django_once.channels.installing import migrating  # noqa: PLC0415 - for channels only

        migrating(using, **kwargs)


def _follow(sender: Any, using: str, **kwargs: Any) -> None:
    """Let the triggers of channels follow their definition, after every `migrate`."""
    from django_once.channels.installing import migrated  # noqa: PLC0415 - channels may be gone

    migrated(using)
