"""Each test is of one kind, and --target keeps the kinds it names."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tools.checkout import ROOT
from tools.children import environment
from tools.pytest_target import pytest_configure

TESTS = """
import pytest
from django.test import TestCase

def test_plain(): pass

@pytest.mark.engine
def test_engine(): pass

@pytest.mark.races
def test_races(): pass

@pytest.mark.django_db
def test_marked_for_a_database(): pass

def test_with_a_database(db): pass

class TestOfDjango(TestCase):
    def test_case(self): pass

@pytest.mark.redis
@pytest.mark.django_db
def test_redis(): pass

@pytest.mark.tools
def test_tools(): pass
"""
CONFTEST = """
import pytest
from tools.pytest_target import kind_of

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    print(*[f"{item.name}={kind_of(item)}" for item in items], sep="\\n")
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Return what pytest prints when it collects the tests above for two kinds."""
    directory = tmp_path_factory.mktemp("kinds")
    (directory / "test_some.py").write_text(TESTS)
    (directory / "conftest.py").write_text(CONFTEST)
    argv = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "no:cacheprovider"]
    argv += ["-p", "tools.pytest_target", "--collect-only", "-q", "--target", "redis,plain"]
    done = subprocess.run(
        [*argv, "-s", str(directory)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("test_plain", "plain"),
        ("test_engine", "engine"),
        ("test_races", "engine"),
        ("test_marked_for_a_database", "engine"),
        ("test_with_a_database", "engine"),
        ("test_case", "engine"),
        ("test_redis", "redis"),
        ("test_tools", "tools"),
    ],
)
def test_each_test_is_of_one_kind(lines, name, kind):
    assert f"{name}={kind}" in lines


def test_a_target_keeps_its_kinds_and_no_other(lines):
    kept = {line.rpartition("::")[2] for line in lines if "::" in line}

    assert kept == {"test_plain", "test_redis"}


def test_an_unknown_kind_is_refused():
    with pytest.raises(pytest.UsageError, match="and not egine"):
        pytest_configure(SimpleNamespace(getoption=lambda name: "plain,egine"))
