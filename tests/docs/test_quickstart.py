"""The quickstart and the tutorial, followed to the letter in new projects."""

from __future__ import annotations

import importlib.util
import secrets
import sys
from contextlib import contextmanager

import pytest
from django.db import connection

from tests.docs.pages import DOCS, ROOT
from tests.docs.project import Project

NO_MYSQLCLIENT = "import pymysql\npymysql.install_as_MySQLdb()\n"


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    yield project
    project.kill()


@contextmanager
def database_of_the_project(tmp_path):
    """Make an empty database where the tests have theirs, and yield what settings say of it."""
    named = {key: connection.settings_dict[key] for key in ("ENGINE", "HOST", "PORT", "USER")}
    named |= {key: connection.settings_dict[key] for key in ("PASSWORD", "OPTIONS")}
    if connection.vendor == "sqlite":
        yield {**named, "NAME": str(tmp_path / "project.sqlite3")}
        return
    name = f"once_readme_{secrets.token_hex(4)}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        yield {**named, "NAME": name}
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.django_db(transaction=True)
def test_the_four_steps_of_the_readme_end_with_a_job_done(project, tmp_path):
    project.run("django-admin startproject mysite .")
    project.run("python manage.py startapp shop")
    with database_of_the_project(tmp_path) as database:
        needs_substitute = "mysql" in database["ENGINE"] and not has_mysqlclient()
        more = NO_MYSQLCLIENT if needs_substitute else ""
        settings = f'{more}INSTALLED_APPS += ["shop"]\nDATABASES = {{"default": {database!r}}}\n'
        project.write("mysite/settings.py", settings, after=True)

        project.follow(ROOT / "README.md", {})

        shown = project.run("python manage.py once show ID --args")
        project.run("python manage.py check --database default --fail-level WARNING")
    assert "Hello, Ann!" in shown


@pytest.mark.slow
def test_the_job_of_the_tutorial_survives_its_worker(project):
    # A person needs longer than a test to write a number.
    project.follow(DOCS / "tutorial" / "first-steps.md", {"30": "12"})

    log = (project.directory / "background.log").read_text()
    assert "was killed by SIGKILL" in log
    assert "has baked 12 of 12" in log
    project.end()


def has_mysqlclient() -> bool:
    found = sys.modules.get("MySQLdb")
    if found is not None:
        return found.__name__ == "MySQLdb"
    return importlib.util.find_spec("MySQLdb") is not None
