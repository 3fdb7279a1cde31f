"""Triggers: each change of a row is a notification, in the transaction that makes it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection, transaction

from django_once.channels import installing
from django_once.models import Job, Notification
from django_once.testing import run_jobs
from tests.channels.shop import listeners
from tests.channels.shop.channels import (
    AuthorChannel,
    EverythingChannel,
    StockChannel,
)
from tests.channels.shop.models import Author, Child, Everything, Heard, Line, Post, Stock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_heard():
    listeners.handed.clear()
    listeners.failing.clear()


def test_a_row_that_is_inserted_is_handled_once_and_leaves_nothing():
    author = Author.objects.create(name="Ada")

    ran = run_jobs()

    assert ran == 1
    assert [post.author_id for post in Post.objects.all()] == [author.pk]
    assert not Job.objects.exists()


def test_equal_changes_are_as_many_notifications():
    author = Author.objects.create(name="Ada")
    run_jobs()

    with transaction.atomic():
        for _ in range(20):
            Author.objects.update(name="Ada")

    assert Notification.from_channel(AuthorChannel).count() == 20
    assert run_jobs() == 20
    assert Heard.objects.filter(what="updated").count() == 20
    assert author.pk


def test_a_writer_that_rolls_back_tells_nobody():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Author.objects.create(name="Ada")
        raise ZeroDivisionError

    assert not Notification.objects.exists()


def test_a_delete_is_heard_before_and_after_and_happens():
    Author.objects.create(name="Ada")
    run_jobs()
    Post.objects.all().delete()

    Author.objects.all().delete()

    assert not Author.objects.exists()
    assert run_jobs() == 2
    assert sorted(Heard.objects.values_list("what", flat=True)) == ["leaving", "left"]


VALUES = {
    "name": "an 'apostrophe', a \"quote\", a \\ and a % sign %s {0} ☃ 𝄞",
    "text": "line\nbreak\ttab \x01 \u2028" + "x" * 20_000,
    "price": Decimal("12345678901234.1234567891"),
    "ratio": 0.1 + 0.2,
    "count": 2**63 - 1,
    "flag": True,
    "at": datetime(2026, 11, 19, 23, 59, 59, 123456, tzinfo=UTC),
    "day": date(2026, 2, 28),
    "hour": time(1, 2, 3, 456789),
    "length": timedelta(days=3, seconds=7, microseconds=11),
    "blob": bytes(range(256)),
    "data": {"a": [1, 2.5, None, True, "☃'\"\\%s"], "b": {"c": 1e-7}},
    "address": "2001:db8::1",
}


def test_values_are_equal_to_the_rows():
    author = Author.objects.create(name="Ada")
    row = Everything.objects.create(**VALUES, author=author)
    empty = Everything.objects.create(id=uuid4())
    Everything.objects.filter(pk=row.pk).update(count=-5, flag=False)

    run_jobs()

    first, second, third = listeners.handed
    assert_equal(second["new"], Everything.objects.get(pk=empty.pk))
    assert_equal(third["new"], Everything.objects.get(pk=row.pk))
    assert first["old"] is None
    assert first["new"].count == 2**63 - 1
    assert third["old"].count == 2**63 - 1
    assert third["new"].author == author
    assert not third["new"]._state.adding


def assert_equal(heard, row):
    for field in Everything._meta.concrete_fields:
        told, there = (getattr(one, field.attname) for one in (heard, row))
        told, there = (bytes(it) if isinstance(it, memoryview) else it for it in (told, there))
        assert (field.name, told) == (field.name, there)
        assert type(told) is type(there)


def test_a_row_of_a_megabyte_is_no_burden_to_its_writer():
    Everything.objects.create(text="é" * 500_000)

    run_jobs()

    assert listeners.handed[0]["new"].text == "é" * 500_000


def test_a_child_of_another_table_has_its_key():
    child = Child.objects.create(title="whole", size=3)

    run_jobs()

    heard = listeners.handed[0]["new"]
    assert (heard.pk, heard.id, heard.size) == (child.pk, child.id, 3)
    assert heard.title == "whole"
    assert heard == child


def test_a_key_of_two_columns_comes_whole():
    line = Line.objects.create(order_id=7, number=2, label="x")

    run_jobs()

    assert listeners.handed[0]["new"].pk == (7, 2)
    assert listeners.handed[0]["new"] == line


def test_each_group_has_a_job_of_its_own():
    Stock.objects.create(place="a", amount=1)

    run_jobs()

    assert sorted(Heard.objects.values_list("by", flat=True)) == ["audit", "default"]


def test_of_one_order_one_waits_for_the_other():
    stock = Stock.objects.create(place="a", amount=0)
    for amount in range(1, 4):
        Stock.objects.filter(pk=stock.pk).update(amount=amount)
    other = Stock.objects.create(place="b", amount=9)

    waiting = Notification.from_channel(StockChannel).filter(blocked_by="predecessor").count()
    run_jobs()

    assert waiting == 6
    heard = Heard.objects.filter(by="default", about__startswith="a").order_by("pk")
    assert [one.about for one in heard] == ["a:0", "a:1", "a:2", "a:3"]
    assert other.pk


def test_what_is_kept_can_be_handled_again():
    from django_once.channels import replay

    Everything.objects.create(name="kept")
    run_jobs()
    kept = Notification.from_channel(EverythingChannel).get()

    count = replay(EverythingChannel)
    run_jobs()

    assert kept.status == "SUCCESSFUL"
    assert count == 1
    assert len(listeners.handed) == 2


def test_nothing_drifts_after_a_migrate():
    assert not installing.drift("default")


def test_raw_sql_is_heard_as_well():
    table = connection.ops.quote_name(Author._meta.db_table)

    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} (name, active) VALUES ('raw', %s)", [True])

    assert run_jobs() == 1
    assert Post.objects.count() == 1
