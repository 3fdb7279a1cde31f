"""What the tests are given: the database and the Redis that dev.py names, nothing else."""

from __future__ import annotations

import os
import secrets

import pytest
from django.db import connections

OURS = "test_once_"


@pytest.mark.engine
@pytest.mark.django_db(databases=["default", "other"])
@pytest.mark.parametrize("alias", ["default", "other"])
def test_the_database_is_one_made_for_the_tests(alias):
    name = str(connections[alias].settings_dict["NAME"])

    assert os.path.basename(name).startswith(OURS)


@pytest.mark.engine
@pytest.mark.django_db(databases=["default", "other"])
def test_the_two_aliases_are_two_databases():
    names = {connections[alias].settings_dict["NAME"] for alias in ("default", "other")}

    assert len(names) == 2


@pytest.mark.engine
@pytest.mark.django_db
def test_the_database_is_of_the_kind_that_the_target_names():
    target = os.environ.get("ONCE_TEST_TARGET", "")
    vendor = {"mariadb": "mysql"}.get(target, target)

    connection = connections["default"]
    connection.ensure_connection()

    assert not target or connection.vendor == vendor
    if vendor == "mysql":
        assert connection.mysql_is_mariadb == (target == "mariadb")


@pytest.mark.engine
@pytest.mark.django_db
def test_the_connection_is_set_up_as_the_documents_ask():
    with connections["default"].cursor() as cursor:
        vendor = connections["default"].vendor
        if vendor == "sqlite":
            cursor.execute("PRAGMA journal_mode")
            expected = "wal"
        elif vendor == "mysql":
            name = (
                "tx_isolation"
                if connections["default"].mysql_is_mariadb
                else "transaction_isolation"
            )
            cursor.execute(f"SELECT @@session.{name}")
            expected = "READ-COMMITTED"
        else:
            cursor.execute("SHOW transaction_isolation")
            expected = "read committed"
        (found,) = cursor.fetchone()

    assert found == expected


@pytest.fixture
def client():
    import redis

    url = os.environ.get("ONCE_TEST_REDIS_URL")
    if not url:
        pytest.skip("ONCE_TEST_REDIS_URL names no server.")
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


@pytest.mark.redis
def test_the_redis_that_was_given_keeps_what_it_is_told(client):
    key = f"test-once:{secrets.token_hex(4)}"

    client.set(key, "kept", ex=60)

    assert client.get(key) == "kept"
    assert client.delete(key) == 1


@pytest.mark.redis
def test_the_redis_that_was_given_carries_a_message(client):
    channel = f"test-once:{secrets.token_hex(4)}"
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(channel)
    while listener.get_message(timeout=1) is not None:
        pass

    client.publish(channel, "awake")

    message = listener.get_message(timeout=5)
    assert message is not None
    assert message["data"] == "awake"
    listener.close()
