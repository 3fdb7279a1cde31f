"""The settings of the tests, with what that suite expects to be there."""

from __future__ import annotations

from tests import settings as ours
from tests.settings import *  # noqa: F403

DATABASES = {"default": ours.DATABASES["default"]}
INSTALLED_APPS = ["django_once"] if ours.HAS_TASKS else ["django_once", "django_tasks"]
TASKS = {
    "default": {
        "BACKEND": f"{ours.DJANGO_BACKENDS}.dummy.DummyBackend",
        "QUEUES": ["default", "special", "high"],
    },
    "database": {"BACKEND": "django_once.backend.DatabaseBackend", "QUEUES": ["special"]},
}
