"""The settings of the tests, with nothing installed but what the contract needs."""

from __future__ import annotations

from tests import settings as ours
from tests.settings import *  # noqa: F403

DATABASES = {"default": ours.DATABASES["default"]}
INSTALLED_APPS = ["django_once"] if ours.HAS_TASKS else ["django_once", "django_tasks"]
TASKS = {"default": {"BACKEND": "tests.upstream.backends.DrainedBackend", "QUEUES": []}}
