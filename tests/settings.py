"""Django's settings for the tests, whose databases ONCE_TEST_DATABASE_URL names, under two aliases.

    sqlite:///abs/path.sqlite3
    postgresql://user:password@host:port/
    postgresql:///?host=/directory/of/the/socket&user=postgres
    mysql://root@localhost/?unix_socket=/path/of/the/socket

Tests happen in databases called test_once_…, which are made for them. A name in
the path of a URL is only for a program started by a test, which shall connect
to the database of that test; the second alias has ONCE_TEST_OTHER_DATABASE_URL
for the same purpose.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import django

HAS_TASKS = django.VERSION >= (6, 0)
# Drawn once and inherited by every process the tests start.
TOKEN = os.environ.setdefault("ONCE_TEST_TOKEN", secrets.token_hex(4))


def database(url: str, alias: str) -> dict[str, Any]:
    """Return what Django must know of the database that a URL names."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)), alias)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    settings: dict[str, Any] = {
        "NAME": unquote(parts.path.strip("/")),
        "HOST": asked.get("host") or asked.get("unix_socket") or parts.hostname or "",
        "PORT": str(asked.get("port") or parts.port or ""),
        "USER": unquote(parts.username or "") or asked.get("user", ""),
        "PASSWORD": unquote(parts.password or "") or asked.get("password", ""),
        "TEST": {"NAME": name_of_tests(alias)},
    }
    if parts.scheme in ("postgresql", "postgres"):
        return {**settings, "ENGINE": "django.db.backends.postgresql"}
    if parts.scheme in ("mysql", "mariadb"):
        return mysql(settings)
    raise ValueError(f"ONCE_TEST_DATABASE_URL has an unknown scheme: {parts.scheme!r}.")


def sqlite(path: Path, alias: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
        # A file, because an in-memory database cannot be seen by another process.
        "TEST": {"NAME": str(path.with_name(f"{name_of_tests(alias)}.sqlite3"))},
    }


def mysql(settings: dict[str, Any]) -> dict[str, Any]:
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        import pymysql

        pymysql.install_as_MySQLdb()
    return {
        **settings,
        "ENGINE": "django.db.backends.mysql",
        "OPTIONS": {"charset": "utf8mb4", "isolation_level": "read committed"},
        "TEST": {**settings["TEST"], "CHARSET": "utf8mb4"},
    }


def name_of_tests(alias: str) -> str:
    return f"test_once_{TOKEN}" if alias == "default" else f"test_once_{TOKEN}_{alias}"


def beside(url: str) -> str:
    """Return the URL of a second database on the same server, or of a file beside the first."""
    return url.removesuffix(".sqlite3") + "-other.sqlite3" if url.startswith("sqlite:") else url


def own_url() -> str:
    """Return the URL of a file in a temporary directory of this user's."""
    directory = Path(tempfile.gettempdir()) / f"once-tests-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return f"sqlite://{directory}/once.sqlite3"


URL = os.environ.get("ONCE_TEST_DATABASE_URL") or own_url()
REDIS_URL = os.environ.get("ONCE_TEST_REDIS_URL", "")

DATABASES = {
    "default": database(URL, "default"),
    "other": database(os.environ.get("ONCE_TEST_OTHER_DATABASE_URL") or beside(URL), "other"),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "django_once",
    "tests.app",
    "tests.channels.shop",
]
if not HAS_TASKS:
    INSTALLED_APPS.append("django_tasks")

DJANGO_BACKENDS = "django.tasks.backends" if HAS_TASKS else "django_tasks.backends"
TASKS = {
    "default": {
        "BACKEND": "django_once.backend.DatabaseBackend",
        "QUEUES": ["default", "mail", "low"],
    },
    "other": {
        "BACKEND": "django_once.backend.DatabaseBackend",
        "QUEUES": [],
        "OPTIONS": {"DATABASE": "other"},
    },
    "immediate": {"BACKEND": f"{DJANGO_BACKENDS}.immediate.ImmediateBackend"},
    "dummy": {"BACKEND": f"{DJANGO_BACKENDS}.dummy.DummyBackend"},
    "broker": {"BACKEND": "tests.schedules.broker.Broker", "QUEUES": []},
}

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
SECRET_KEY = "only-for-tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = True
TIME_ZONE = "UTC"
