"""The Django app: its label is `once`; every app's `tasks` module is loaded with it."""

from __future__ import annotations

from django.apps import AppConfig
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
