"""The page about progress bars, followed to the letter in a new project, and visited there."""

from __future__ import annotations

import django
import pytest

from tests.docs.pages import DOCS
from tests.docs.project import Project

VISIT = """
import re
from django.test import Client
visitor = Client(headers={"host": "localhost"})
page = visitor.get("/import/").content.decode()
print("shown", "Import" in page and 'data-state="waiting"' in page)
(address,) = re.findall(r'data-once-progress="([^"]+)"', page)
print("before", visitor.get(address).json()["state"])
from django.core.management import call_command
try:
    call_command("once", "worker", "--batch")
except SystemExit:
    pass
now = visitor.get(address).json()
print("after", now["state"], now["share"], now["message"])
"""


@pytest.mark.slow
def test_a_reader_gets_a_bar_that_moves(tmp_path):
    project = Project(tmp_path)
    project.run("django-admin startproject mysite .")
    project.run("python manage.py startapp shop")
    apps = ["django_once", "shop", *(["django_tasks"] if django.VERSION < (6, 0) else [])]
    settings = (
        f"INSTALLED_APPS += {apps}\n"
        'TASKS = {"default": {"BACKEND": "django_once.backend.DatabaseBackend"}}\n'
    )
    project.write("mysite/settings.py", settings, after=True)
    (tmp_path / "shop" / "templates" / "shop").mkdir(parents=True)

    project.follow(DOCS / "how-to" / "show-progress.md", {})
    project.run("python manage.py migrate")
    project.write("visit.py", VISIT)
    told = project.run("python manage.py shell -c \"exec(open('visit.py').read())\"")

    assert "shown True" in told
    assert "before waiting" in told
    assert "after successful 1.0 order 3" in told
