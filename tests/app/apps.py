"""The app that stands in for a user's."""

from __future__ import annotations

from django.apps import AppConfig


class TestsAppConfig(AppConfig):
    """The tests' own app."""

    name = "tests.app"
    label = "app"
    default_auto_field = "django.db.models.BigAutoField"
