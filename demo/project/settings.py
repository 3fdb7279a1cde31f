"""The shop's settings: one database for orders, charges and jobs."""

import os
from pathlib import Path

import django

URL = os.environ["ONCE_DEMO_DATABASE_URL"]


def sqlite(path):
    """Return the settings for a file of SQLite that several processes write to."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def postgresql(url):
    """Return the settings for a database of PostgreSQL."""
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - only PostgreSQL's users have it

    said = conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": said["dbname"],
        "HOST": said.get("host", ""),
        "PORT": said.get("port", ""),
        "USER": said.get("user", ""),
        "PASSWORD": said.get("password", ""),
    }


DATABASES = {
    "default": sqlite(URL.removeprefix("sqlite://"))
    if URL.startswith("sqlite://")
    else postgresql(URL)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = ["django_once", "shop"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

TASKS = {
    "default": {
        "BACKEND": "django_once.backend.DatabaseBackend",
        "QUEUES": ["billing", "mail"],
        # Short, so that a lost host is noticed while somebody watches. The default is 60 s.
        "OPTIONS": {"LEASE": "3s"},
    }
}

OUTBOX = Path(os.environ.get("ONCE_DEMO_OUTBOX", "outbox.jsonl"))
ROOT_URLCONF = "urls"
ALLOWED_HOSTS = ["testserver"]
SECRET_KEY = "only-for-the-demo"
USE_TZ = True
