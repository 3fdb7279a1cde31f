"""The settings of the tests say of each database what its URL says."""

from __future__ import annotations

import importlib.util

import django
import pytest

from tests import settings


def test_postgresql_on_a_socket():
    found = settings.database("postgresql:///?host=/run/pg&user=postgres", "default")

    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["HOST"], found["USER"], found["NAME"]) == ("/run/pg", "postgres", "")


def test_postgresql_on_a_host():
    found = settings.database("postgresql://me:p%40ss@db.example:5433/", "default")

    assert (found["HOST"], found["PORT"]) == ("db.example", "5433")
    assert (found["USER"], found["PASSWORD"]) == ("me", "p@ss")


def test_mysql_on_a_socket_reads_what_is_committed():
    found = settings.database("mysql://root@localhost/?unix_socket=/run/my.sock", "default")

    assert found["HOST"] == "/run/my.sock"
    assert found["OPTIONS"]["isolation_level"] == "read committed"
    assert found["OPTIONS"]["charset"] == "utf8mb4"
    assert importlib.util.find_spec("pymysql") or importlib.util.find_spec("MySQLdb")


def test_sqlite_locks_for_writing_at_once_and_logs_ahead():
    found = settings.database("sqlite:///some/where/once.sqlite3", "default")

    assert found["NAME"] == "/some/where/once.sqlite3"
    assert found["TEST"]["NAME"].startswith("/some/where/test_once_")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]


@pytest.mark.parametrize(
    "url", ["sqlite:///some/where/once.sqlite3", "postgresql:///?host=/run/pg", "mysql://h/"]
)
def test_the_two_aliases_never_share_a_database(url):
    one = settings.database(url, "default")
    other = settings.database(settings.beside(url), "other")

    assert one["TEST"]["NAME"] != other["TEST"]["NAME"]
    if url.startswith("sqlite"):
        assert one["NAME"] != other["NAME"]


def test_a_name_in_the_url_leads_to_that_database():
    assert settings.database("postgresql://h/test_once_7", "default")["NAME"] == "test_once_7"


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="unknown scheme: 'oracle'"):
        settings.database("oracle://h/", "default")


def test_tasks_are_those_of_django_or_of_its_backport():
    has_tasks = django.VERSION >= (6, 0)

    assert ("django_tasks" in settings.INSTALLED_APPS) is not has_tasks
    assert settings.TASKS["dummy"]["BACKEND"].startswith(
        "django.tasks." if has_tasks else "django_tasks."
    )
