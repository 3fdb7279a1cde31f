"""`once channels` and `once listen`, as people ask them."""

from __future__ import annotations

import pytest

from django_once.channels import installing, notify
from django_once.models import Notification
from django_once.sql.triggers import installed
from django_once.testing import run_jobs
from tests.channels.shop.channels import OrderPlaced
from tests.channels.shop.models import Everything
from tests.management.shell import once

pytestmark = pytest.mark.django_db(transaction=True)
ORDERS = "tests.channels.shop.channels.OrderPlaced"


def line(answer, channel, group="default"):
    (found,) = [
        one for one in answer.json["channels"] if (one["channel"], one["group"]) == (channel, group)
    ]
    return found


def test_channels_say_who_hears_what_and_what_waits():
    notify(OrderPlaced, order_id=1)

    answer = once("channels", "--backend", "default", "--json")

    assert answer.code == 0
    said = line(answer, ORDERS)
    assert (said["kind"], said["waiting"], said["failed"]) == ("stored", 1, 0)
    assert said["listeners"] == [
        "tests.channels.shop.listeners.confirm", "tests.channels.shop.listeners.count",
    ]  # fmt: skip
    stock = line(answer, "tests.channels.shop.channels.StockChannel", "audit")
    assert (stock["model"], stock["events"]) == ("shop.Stock", ["post_insert", "post_update"])
    assert stock["triggers"] == "in place"
    assert "OrderPlaced" in once("channels", "--backend", "default").out


def test_a_trigger_that_is_missing_is_shown_with_the_remedy():
    installed.remove("default", [Everything._meta.db_table])

    answer = once("channels", "--backend", "default")
    said = once("channels", "--backend", "default", "--json")
    installing.install("default")

    assert answer.code == 1
    assert "python manage.py migrate" in answer.err
    assert line(said, "tests.channels.shop.channels.EverythingChannel")["triggers"] == "missing"


def test_what_nobody_declares_any_more_is_shown():
    notify(OrderPlaced, order_id=1)
    Notification.objects.update(channel="gone.Channel", task="gone.Channel:default")

    said = line(once("channels", "--backend", "default", "--json"), "gone.Channel")

    assert (said["kind"], said["waiting"]) == ("not declared", 1)


def test_replay_asks_and_counts():
    Everything.objects.create(name="kept")
    run_jobs()
    path = "tests.channels.shop.channels.EverythingChannel"

    refused = once("channels", "replay", path, answer="n\n")
    done = once("channels", "replay", path, "--yes", "--within", "1h", "--json")
    unknown = once("channels", "replay", "tests.channels.shop.channels.EverythingChanel", "-y")

    assert refused.code == 1
    assert done.json == {"replayed": 1}
    assert unknown.code == 2
    assert "Did you mean" in unknown.err
    assert once("channels", "replay").code == 2


def test_listen_refuses_what_nobody_declares_and_numbers_out_of_range():
    unknown = once("listen", "--channels", "tests.channels.shop.channels.OrderPlacd")
    crowd = once("listen", "--channels", ORDERS, "--processes", "0")

    assert unknown.code == crowd.code == 2
    assert f"Did you mean '{ORDERS}'?" in unknown.err
    assert "--processes must be from 1 to 256, got 0." in crowd.err
