"""Addresses survive being written and read, name no database, and never show a password."""

from __future__ import annotations

import pytest

from tools.errors import Refusal
from tools.servers.address import Address, read_address


@pytest.mark.parametrize(
    "address",
    [
        Address("postgresql", host="127.0.0.1", port=5432, user="me", password="s:e/c@r#t"),
        Address("postgresql", socket="/var/run/a b", user="postgres"),
        Address("postgresql", socket="/tmp/x", port=5433, user="me", password="p w"),
        Address("postgresql", host="::1", port=5432, user="me"),
        Address("mysql", user="root", socket="/run/mysqld/mysqld.sock"),
        Address("mysql", host="db.example", port=3306, user="me", password="ä"),
        Address("redis", host="127.0.0.1", port=6379, number="3"),
        Address("unix", socket="/tmp/redis.sock"),
    ],
)
def test_an_address_is_the_same_after_writing_and_reading(address):
    found = read_address(address.url)

    assert found.url == address.url
    assert (found.scheme, found.user, found.password) == (
        address.scheme,
        address.user,
        address.password,
    )
    assert (found.socket, found.port) == (address.socket, address.port)


@pytest.mark.parametrize(
    "url",
    ["postgres://me:secret@h/live", "mysql://me:secret@h/live", "postgresql+psycopg://h/live"],
)
def test_the_name_of_a_database_is_dropped(url):
    assert "live" not in read_address(url).url


def test_a_password_is_never_shown():
    address = read_address("postgresql://me:secret@db.example:5433/live")

    assert address.password == "secret"
    assert address.shown == "db.example:5433"


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("postgresql:///?host=/var/run/postgresql", True),
        ("postgresql://localhost/", True),
        ("mysql://root@127.0.0.1:3306/", True),
        ("redis://[::1]:6379/", True),
        ("unix:///tmp/redis.sock", True),
        ("postgresql://db.example/", False),
        ("redis://10.0.0.1/", False),
        ("mysql://root@localhost.example/", False),
        ("postgresql:///?host=db.example", False),
    ],
)
def test_what_is_on_this_machine_is_told_from_what_is_not(url, is_local):
    assert read_address(url).is_local is is_local


@pytest.mark.parametrize("url", ["oracle://me:secret@h/", "me:secret@h", "redis://h:port/"])
def test_a_url_that_means_nothing_is_refused_without_repeating_it(url):
    with pytest.raises(Refusal) as refused:
        read_address(url)
    assert "secret" not in str(refused.value)
