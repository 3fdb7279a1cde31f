"""A worker's connections notice sooner than Django's that the other side is gone."""

from __future__ import annotations

import pytest
from django.db import connection, connections

from django_once.processes.limits import limit

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def options(monkeypatch):
    """The options of this test's database, put back after it."""
    own = dict(connection.settings_dict["OPTIONS"])
    yield connections.settings["default"]["OPTIONS"]
    connection.close()
    connection.settings_dict["OPTIONS"].clear()
    connection.settings_dict["OPTIONS"].update(own)


def test_a_limited_connection_can_be_opened(options):
    limit("default")
    connection.close()
    connection.ensure_connection()

    if connection.vendor == "postgresql":
        told = connection.connection.info.get_parameters()
        assert (told["tcp_user_timeout"], told["keepalives_idle"]) == ("10000", "10")
    assert connection.is_usable()


def test_what_the_settings_say_stands(options):
    options["connect_timeout"] = 77

    limit("default")

    assert options["connect_timeout"] == 77
    del options["connect_timeout"]


def test_a_service_says_everything_itself(options):
    options["service"] = "shop"
    before = dict(options)

    limit("default")

    assert options == before
