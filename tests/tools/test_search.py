"""A server is looked for in one order, and never used where it should not be."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tools.errors import Refusal
from tools.servers import search as searching
from tools.servers.address import Address
from tools.servers.ask import lets_create
from tools.servers.harness import Harness
from tools.servers.kind import Binaries, Kind
from tools.servers.search import Search
from tools.servers.server import Facts, Missing, Server

GOOD = Facts("Thing", "3.2", may_create=True)


class Thing(Kind):
    """A kind of server that is wherever a test puts it."""

    name = "thing"
    flavours = ("Thing",)
    oldest = (3, 1)
    variables = ("ONCE_TEST_THING_URL",)
    hints = ("DATABASE_URL",)
    schemes = ("mysql",)
    remedy = "buy one"
    farewell = signal.SIGTERM

    def addresses(self):
        return [Address("mysql", host="127.0.0.1", port=1)]

    def installed(self):
        return [Binaries(Path("/bin/thingd"), "local binaries")]

    def fetched(self, search):
        return [Binaries(Path("/fetched/thingd"), "fetched")]

    def start(self, binaries, harness):
        return Address("mysql", socket=str(binaries.program))


@pytest.fixture
def search(monkeypatch, this_python):
    """Return a search that hears what a test puts into its table of answers, and else nothing."""
    for name in ("ONCE_DEV_IGNORE_RUNNING", "ONCE_DEV_IGNORE_LOCAL"):
        monkeypatch.delenv(name, raising=False)
    search = Search("python", this_python, Harness())
    search.answers = {}
    monkeypatch.setattr(search, "ask", lambda one: search.answers.get(one.shown, "nothing listens"))
    return search


def test_one_that_was_named_is_used(search, monkeypatch):
    monkeypatch.setenv("ONCE_TEST_THING_URL", "mysql://me:secret@localhost:7/live")
    search.answers = {"localhost:7": GOOD, "127.0.0.1:1": GOOD}

    found = search.find(Thing())

    assert isinstance(found, Server)
    assert (found.origin, found.address.shown) == ("ONCE_TEST_THING_URL", "localhost:7")


def test_one_that_was_named_and_fails_has_no_substitute(search, monkeypatch):
    monkeypatch.setenv("ONCE_TEST_THING_URL", "mysql://me:secret@localhost:7/")
    search.answers = {"127.0.0.1:1": GOOD}

    found = search.find(Thing())

    assert isinstance(found, Missing)
    assert "ONCE_TEST_THING_URL, localhost:7: nothing listens" in found.reason
    assert "secret" not in found.reason


def test_another_machine_is_left_alone_until_it_is_allowed(search, monkeypatch):
    monkeypatch.setenv("ONCE_TEST_THING_URL", "mysql://me@db.example:7/")
    search.answers = {"db.example:7": GOOD}

    assert "--allow-remote" in search.find(Thing()).reason
    search.allow_remote = True
    assert isinstance(search.find(Thing()), Server)


def test_a_database_url_of_another_kind_or_machine_is_passed_over(search, monkeypatch):
    search.answers = {"127.0.0.1:1": GOOD, "db.example:7": GOOD}

    for url in ("postgresql://localhost:7/live", "mysql://db.example:7/live", "nonsense"):
        monkeypatch.setenv("DATABASE_URL", url)
        assert search.find(Thing()).origin == "running server"


def test_a_running_server_comes_before_binaries_and_those_before_fetching(search, monkeypatch):
    search.answers = {"127.0.0.1:1": GOOD, "/bin/thingd": GOOD, "/fetched/thingd": GOOD}

    assert search.find(Thing()).origin == "running server"
    monkeypatch.setenv("ONCE_DEV_IGNORE_RUNNING", "1")
    assert search.find(Thing()).origin == "local binaries"
    monkeypatch.setenv("ONCE_DEV_IGNORE_LOCAL", "1")
    found = search.find(Thing())
    assert (found.origin, found.is_ours) == ("fetched", True)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts("Other", "9.9", True), "is Other"),
        (Facts("Thing", "3.0.99", True), "Thing 3.0.99 is older than 3.1"),
        (Facts("Thing", "3.2", False), "may not create databases"),
    ],
)
def test_a_running_server_that_does_not_fit_is_passed_over_with_the_reason(search, facts, reason):
    search.answers = {"127.0.0.1:1": facts}

    found = search.find(Thing())

    assert isinstance(found, Missing)
    assert reason in found.reason
    assert found.remedy == "buy one"


def test_nothing_anywhere_names_every_place_that_was_looked_at(search, monkeypatch):
    def refuse(one, two):
        raise Refusal("no wheel for this platform")

    monkeypatch.setattr(Thing, "fetched", refuse)

    reason = search.find(Thing()).reason

    for words in ("ONCE_TEST_THING_URL is not set", "127.0.0.1:1", "/bin/thingd", "no wheel"):
        assert words in reason


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION", True),
        ("GRANT SELECT, CREATE, DROP ON *.* TO `me`@`%`", True),
        ("GRANT ALL PRIVILEGES ON `test\\_once\\_%`.* TO `me`@`%`", True),
        ("GRANT ALL PRIVILEGES ON `test\\_%`.* TO `me`@`%`", True),
        ("GRANT USAGE ON *.* TO `me`@`%`", False),
        ("GRANT SELECT, CREATE VIEW ON *.* TO `me`@`%`", False),
        ("GRANT ALL PRIVILEGES ON `live`.* TO `me`@`%`", False),
        ("GRANT `role` TO `me`@`%`", False),
    ],
)
def test_the_right_to_create_databases_is_read_from_the_grants(grant, expected):
    assert lets_create(grant) is expected


def test_an_address_where_nothing_listens_is_not_asked(tmp_path):
    assert not searching.listens(Address("mysql", socket=str(tmp_path / "none.sock")))
    assert not searching.listens(Address("redis", host="127.0.0.1", port=9))
