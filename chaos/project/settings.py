"""Settings of the project under load; where its rows live, and how long a lease is, it is told."""

from __future__ import annotations

import json
import os

import django

DATABASES = {"default": json.loads(os.environ["ONCE_CHAOS_DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        import pymysql

        pymysql.install_as_MySQLdb()

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_once", "chaos.project.work"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

LEASE = float(os.environ["ONCE_CHAOS_LEASE"])
TASKS = {
    "default": {
        "BACKEND": "django_once.backend.DatabaseBackend",
        "QUEUES": ["work", "long"],
        "OPTIONS": {"LEASE": LEASE},
    }
}
LEDGER = os.environ["ONCE_CHAOS_LEDGER"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"django_once": {"handlers": ["stderr"], "level": "INFO", "propagate": False}},
}
SECRET_KEY = "only-for-chaos"
USE_TZ = True
