"""The app that brings `manage.py run_scheduler`."""

from __future__ import annotations

from django.apps import AppConfig


class PeriodicTasksConfig(AppConfig):
    """Has no model and starts nothing."""

    name = "django_once.contrib.periodic_tasks"
    label = "once_periodic_tasks"
    verbose_name = "Names of django-periodic-tasks"
