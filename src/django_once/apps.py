"""The Django app: its label is `once`; every app's `tasks` module is loaded with it."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class OnceConfig(AppConfig):
    """Loads the declarations of all apps; starts no thread, asks no database."""

    name = "django_once"
    label = "once"
    verbose_name = "Background work"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the checks, and the tasks that a worker must know."""
        from django_once import checks  # noqa: F401, PLC0415 - registers them

        autodiscover_modules("tasks")
        post_migrate.connect(_write_down, sender=self, dispatch_uid="django_once.declarations")


def _write_down(sender: Any, using: str, **kwargs: Any) -> None:
    """Let SQL know the tasks of this release, after every migrate."""
    from django_once.declarations import migrated  # noqa: PLC0415 - it loads models

    migrated(using)
