"""Settings of a project as a user would write them, with the defaults of the package.

The bench says by ONCE_BENCH_DATABASE_URL where the jobs live.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import django

URL = os.environ["ONCE_BENCH_DATABASE_URL"]


def database(url: str) -> dict[str, Any]:
    """Return what Django must know of the database that a URL names."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite(unquote(parts.path))
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    named = {
        "NAME": unquote(parts.path.strip("/")),
        "HOST": asked.get("host") or asked.get("unix_socket") or parts.hostname or "",
        "PORT": str(asked.get("port") or parts.port or ""),
        "USER": unquote(parts.username or "") or asked.get("user", ""),
        "PASSWORD": unquote(parts.password or "") or asked.get("password", ""),
    }
    return mysql(named) if parts.scheme == "mysql" else postgresql(named)


def sqlite(path: str) -> dict[str, Any]:
    """Return the settings that the documents recommend for a file."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    }


def postgresql(named: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for a server of PostgreSQL."""
    return {**named, "ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None}


def mysql(named: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for a server of MariaDB or MySQL, with the driver that is there."""
    try:
        import MySQLdb  # noqa: F401, PLC0415 - only MySQL's users have one of the two
    except ImportError:
        import pymysql  # noqa: PLC0415

        pymysql.install_as_MySQLdb()
    return {
        **named,
        "ENGINE": "django.db.backends.mysql",
        "CONN_MAX_AGE": None,
        "OPTIONS": {"charset": "utf8mb4", "isolation_level": "read committed"},
    }


DATABASES = {"default": database(URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_once", "bench.project.work"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

TASKS = {
    "default": {
        "BACKEND": "django_once.backend.DatabaseBackend",
        "QUEUES": [],
    }
}
SECRET_KEY = "only-for-the-bench"
USE_TZ = True
