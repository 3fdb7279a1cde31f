"""The closing table has a row for everything, and nothing that was not tested looks tested."""

from __future__ import annotations

import json

import pytest

from tools.closing import summary, table, write_json
from tools.counts import Counts
from tools.environments import Environment
from tools.interpreters import Interpreter
from tools.runs import Ended
from tools.servers.address import Address
from tools.servers.server import Server
from tools.targets import NotTested, Target
from tools.verbs.test import required_but_missing

MISSING = NotTested("mysql", "django-6.1", "no server (nothing listens on 3306)", "give a URL")


@pytest.fixture
def ended(tmp_path):
    """Return how two targets ended: one well, one with a failure."""
    environment = Environment("test", Interpreter("/python", (3, 13, 0)), tmp_path / "environment")
    (environment.packages / "django-6.1.3.dist-info").mkdir(parents=True)
    address = Address("postgresql", host="h", user="me", password="secret")
    server = Server("postgresql", "15.20", "running server", address, flavour="PostgreSQL")
    return [
        Ended(Target("sqlite", "django-6.1", environment, ("engine",)), Counts(1200, 0, 3), 61.4),
        Ended(
            Target("postgresql", "django-6.1", environment, ("engine",), server),
            Counts(9, 1, 0),
            5,
        ),
    ]


def test_each_target_has_a_row_with_its_server_and_its_verdict(ended):
    lines = table(ended, [MISSING], "SQLite 3.40.1")

    assert lines[0].split()[:2] == ["target", "server"]
    assert "SQLite 3.40.1" in lines[1]
    assert lines[1].endswith("1,203  1:01  passed, 3 skipped")
    assert "PostgreSQL 15.20  running server    3.13.0 · 6.1.3" in lines[2]
    assert lines[2].endswith("FAILED: 1")


def test_what_was_not_tested_has_reason_and_remedy(ended):
    text = "\n".join(table(ended, [MISSING], ""))

    assert "NOT TESTED: no server (nothing listens on 3306)." in text
    assert "Remedy: give a URL" in text


def test_the_summary_counts_what_was_not_tested():
    assert "1 target NOT TESTED" in summary(Counts(1209, 1, 3), [MISSING])
    assert "1,209 passed" in summary(Counts(1209, 1, 3), [MISSING])
    assert "NOT TESTED" not in summary(Counts(1209, 1, 3), [])


def test_the_json_says_the_same_and_no_password(ended, tmp_path):
    path = tmp_path / "reports" / "test.json"

    write_json(path, ended, [MISSING], "SQLite 3.40.1")

    said = json.loads(path.read_text())
    assert (said["passed"], said["failed"], said["skipped"]) == (1209, 1, 3)
    assert [row["target"] for row in said["targets"]] == ["sqlite", "postgresql"]
    assert said["targets"][1]["server"] == "PostgreSQL 15.20"
    assert said["not_tested"][0]["remedy"] == "give a URL"
    assert "secret" not in path.read_text()


def test_what_is_required_must_have_been_tested(ended):
    assert required_but_missing(ended, [MISSING], ("sqlite", "postgresql")) == []
    assert required_but_missing(ended, [MISSING], ("mysql", "redis")) == ["mysql", "redis"]
