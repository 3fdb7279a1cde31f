"""What a worker of a test is told: the tests' settings, and what this test says besides."""

from __future__ import annotations

import importlib
import json
import os
import sys

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS, TASKS

SAID = json.loads(os.environ["ONCE_TEST_PROCESSES"])

for alias, changes in SAID["databases"].items():
    DATABASES[alias].update(changes)

INSTALLED_APPS = [*INSTALLED_APPS, "tests.flow", "tests.processes", "tests.survival"]
ENGINE = "django_once.backend.DatabaseBackend"
TASKS = {
    **TASKS,
    "default": {"BACKEND": ENGINE, "QUEUES": [], "OPTIONS": SAID["options"]},
    "second": {"BACKEND": ENGINE, "QUEUES": [], "OPTIONS": SAID["options"]},
    "other": {"BACKEND": ENGINE, "QUEUES": [], "OPTIONS": {**SAID["options"], "DATABASE": "other"}},
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {
        "django.tasks": {"handlers": ["console"], "level": "INFO", "propagate": False},
        "django_tasks": {"handlers": ["console"], "level": "INFO", "propagate": False},
        "django_once": {"handlers": ["console"], "level": "INFO", "propagate": False},
    },
}
if "ONCE_TEST_QUIET" in os.environ:
    LOGGING["loggers"]["django.tasks"]["level"] = "CRITICAL"
    LOGGING["loggers"]["django_tasks"]["level"] = "CRITICAL"
if SAID["receivers"]:
    INSTALLED_APPS.append("tests.processes.receivers")

if "ONCE_TEST_IMPORTS" in os.environ:
    sys.path.insert(0, os.environ["ONCE_TEST_PATH"])
    importlib.import_module(os.environ["ONCE_TEST_IMPORTS"])
