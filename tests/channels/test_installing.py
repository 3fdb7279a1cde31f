"""Triggers follow their channels on `migrate`, and what differs is found."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from django_once.channel_checks import check_triggers
from django_once.channels import TriggerChannel, installing, listener
from django_once.definitions import channel as definitions
from django_once.definitions import listeners as hearing
from django_once.models import Notification
from django_once.sql.triggers import installed
from django_once.sql.triggers.postgresql import CHANNEL, WINDOW
from django_once.sql.triggers.values import LONGEST_NAME, is_ours
from django_once.testing import run_jobs
from django_once.wakeups import listen
from tests.channels.shop import listeners
from tests.channels.shop.channels import AuthorChannel, EverythingChannel, StockChannel
from tests.channels.shop.models import Author, Everything, Heard, Stock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    """Forget what a test declares, and install what stands after it."""
    listeners.handed.clear()
    monkeypatch.setattr(definitions, "_channels", dict(definitions._channels))
    monkeypatch.setattr(hearing, "_listeners", list(hearing._listeners))
    yield
    monkeypatch.undo()
    installing.install("default")


def migrate(*words: str) -> None:
    call_command("migrate", *words, stdout=StringIO(), verbosity=0)


def names() -> set[str]:
    return {one.name for one in installed.KINDS[connection.vendor].installed(connection)}


def findings() -> list[str]:
    return [one.msg for one in check_triggers(databases=["default"])]


def test_every_name_fits_and_is_known_as_ours():
    wanted = installing.wanted("default")

    assert names() == {trigger.name for trigger in wanted}
    assert all(len(name) <= LONGEST_NAME and is_ours(name) for name in names())
    assert (CHANNEL, WINDOW) == (listen.CHANNEL, listen.WINDOW)


def test_a_migrate_that_changes_nothing_touches_nothing():
    assert not installing.install("default")


def test_what_was_dropped_is_found_and_comes_back():
    gone = installed.remove("default", [table_of(Author)])

    said = findings()
    migrate()

    assert len(gone) == 4
    assert len(said) == 1
    assert "missing: " in said[0]
    assert findings() == []


def test_a_changed_word_needs_a_migrate_and_nothing_else(monkeypatch):
    monkeypatch.setattr(StockChannel, "priority", 7)

    said = findings()
    migrate()
    Stock.objects.create(place="a")

    assert "changed: " in said[0]
    assert set(Notification.objects.values_list("priority", flat=True)) == {7}


def test_a_channel_that_is_no_more_takes_its_triggers_along():
    definitions.forget(EverythingChannel)

    said = findings()
    migrate()
    Everything.objects.create(name="unheard")

    assert "left over: " in said[0]
    assert not Notification.objects.exists()


def test_one_that_is_not_stored_any_more_stores_nothing(monkeypatch):
    monkeypatch.setattr(AuthorChannel, "lock_notifications", False)

    migrate()
    Author.objects.create(name="Ada")

    assert not Notification.objects.exists()


def test_channels_of_one_name_and_long_ones_do_not_meet():
    @dataclass
    class AChannelWithANameThatIsMuchLongerThanAnyDatabaseWouldKeepOfAName1(TriggerChannel):
        model = Author
        lock_notifications = True

    @dataclass
    class AChannelWithANameThatIsMuchLongerThanAnyDatabaseWouldKeepOfAName2(TriggerChannel):
        model = Author
        lock_notifications = True

    made = (
        AChannelWithANameThatIsMuchLongerThanAnyDatabaseWouldKeepOfAName1,
        AChannelWithANameThatIsMuchLongerThanAnyDatabaseWouldKeepOfAName2,
    )
    for channel in made:
        listener(channel)(lambda old, new: Heard.objects.create(what="long"))
    migrate()

    Author.objects.create(name="Ada")
    run_jobs()

    assert findings() == []
    assert Heard.objects.filter(what="long").count() == 2


def test_names_with_quotes_and_letters_of_all_kinds_are_said_as_they_are():
    odd = 'it\'s a "group" \\ with %s {0} ☃'

    @dataclass
    class Quoted(TriggerChannel):
        model = Author
        lock_notifications = True
        groups = (odd,)

    listener(Quoted, group=odd)(lambda old, new: Heard.objects.create(what=odd))
    migrate()
    Author.objects.create(name="Ada")
    (stored,) = Notification.from_channel(Quoted)

    run_jobs()

    assert findings() == []
    assert stored.group == odd
    assert Heard.objects.filter(what=odd).count() == 1


def test_backwards_and_forwards_again_with_notifications_stored():
    Everything.objects.create(name="before")

    installing.migrating("default", [(Step("shop"), True)])
    between = names()
    migrate()
    Everything.objects.create(name="after")
    run_jobs()

    kept = connection.vendor == "postgresql"
    assert any("Everything" in name for name in between) == kept
    assert [one["new"].name for one in listeners.handed] == ["before", "after"]


def test_when_jobs_go_all_triggers_go():
    installing.migrating("default", [(Step("once"), True)])

    assert names() == set()


@dataclass
class Step:
    app_label: str


@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_a_disabled_trigger_is_found_and_enabled():
    name = next(name for name in names() if "post_insert_Author" in name)
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER TABLE {table_of(Author)} DISABLE TRIGGER "{name}"')

    said = findings()
    migrate()

    assert "disabled: " in said[0]
    assert findings() == []


@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_columns_may_change_under_the_trigger_of_a_writer():
    table = connection.ops.quote_name(table_of(Everything))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN extra integer DEFAULT 5")
        cursor.execute(f"ALTER TABLE {table} RENAME COLUMN count TO counted")
        cursor.execute(
            f"INSERT INTO {table} (id, \"odd 'name of\", text) VALUES (gen_random_uuid(), 'x', '')"
        )
        cursor.execute(f"ALTER TABLE {table} DROP COLUMN extra")
        cursor.execute(f"ALTER TABLE {table} RENAME COLUMN counted TO count")

    run_jobs()

    assert [(one["new"].name, one["new"].count) for one in listeners.handed] == [("x", None)]


@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_a_partitioned_table_is_heard():
    table = connection.ops.quote_name(table_of(Stock))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO shop_stock_plain")
        cursor.execute(
            f"CREATE TABLE {table} (id bigint, place varchar(200), amount integer) "
            "PARTITION BY LIST (place)"
        )
        cursor.execute(f"CREATE TABLE shop_stock_a PARTITION OF {table} FOR VALUES IN ('a')")
    try:
        migrate()
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {table} VALUES (1, 'a', 5)")
        run_jobs()
        heard = sorted(Heard.objects.values_list("about", "by"))
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {table}")
            cursor.execute(f"ALTER TABLE shop_stock_plain RENAME TO {table}")
    assert heard == [("a:5", "audit"), ("a:5", "default")]


def table_of(model):
    return model._meta.db_table
