"""Listeners as processes, killed at any moment: each change is handled exactly once."""

from __future__ import annotations

import random
import signal
import threading
from itertools import count

import pytest
from django.db import connection, transaction

from django_once.channels import notify
from django_once.models import Notification
from tests.channels.shop.channels import OrderPlaced, Rang
from tests.channels.shop.models import Author, Everything, Heard, Post, Stock
from tests.management.shell import in_shell
from tests.processes.conftest import gate, ledger, start, worker  # noqa: F401
from tests.processes.workers import on_one_database, send, until

pytestmark = [
    on_one_database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'"),
]

WRITERS = 3
EACH = 60
BULK = 300
NUMBERS = count()


def test_each_change_is_handled_exactly_once_however_its_listeners_die(start):  # noqa: F811
    table = connection.ops.quote_name(Author._meta.db_table)
    listening = start("--processes", "4", "-c", "2").ready(4)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]

    for writer in writers:
        writer.start()
    with connection.cursor() as cursor:
        for _ in range(5):
            cursor.execute(
                f"INSERT INTO {table} (name, active) SELECT 'bulk', true "
                f"FROM generate_series(1, {BULK})"
            )
            if listening.workers:
                send(signal.SIGKILL, random.choice(listening.workers))
            Author.objects.bulk_create([Author(name="many") for _ in range(BULK)])
        with cursor.copy(f"COPY {table} (name, active) FROM STDIN") as copy:
            for _ in range(BULK):
                copy.write_row(("copied", True))
    for writer in writers:
        writer.join()
    send(signal.SIGKILL, *listening.workers[:2])
    until(lambda: not Notification.objects.exists(), what="an end of all notifications")
    listening.stop()

    authors = set(Author.objects.values_list("pk", flat=True))
    welcomed = list(Post.objects.values_list("author_id", flat=True))
    assert len(authors) == WRITERS * EACH + 11 * BULK
    assert len(welcomed) == len(set(welcomed)) == len(authors)
    assert Heard.objects.filter(what="updated").count() == WRITERS * EACH


def write(number: int) -> None:
    try:
        for turn in range(EACH):
            author = Author.objects.create(name=f"writer {number}")
            author.name = "renamed"
            author.save()
            try:
                with transaction.atomic():
                    Author.objects.create(name="rolled back")
                    raise ZeroDivisionError(turn)
            except ZeroDivisionError:
                continue
    finally:
        connection.close()


def test_listen_handles_the_named_channels_and_no_others():
    notify(OrderPlaced, order_id=1)
    Everything.objects.create(name="left alone")
    path = "tests.channels.shop.channels.OrderPlaced"

    answer = in_shell("listen", "--channels", path, "--batch", "--recover")

    assert answer.code == 0, answer.err
    assert f"Listening to {path}." in answer.err
    assert Heard.objects.filter(what="placed").count() == 2
    (left,) = Notification.objects.all()
    assert left.channel.endswith("EverythingChannel")


def test_what_runs_in_a_transaction_of_its_own_is_claimed_ahead(start):  # noqa: F811
    Everything.objects.bulk_create([Everything(name=str(n)) for n in range(300)])

    listening = start("-c", "1").ready()
    until(lambda: not Notification.objects.exclude(status="SUCCESSFUL").exists())
    listening.stop()

    kept = Notification.objects.values_list("claim", flat=True)
    assert len(kept) == 300
    assert len(set(kept)) < 150


def test_of_one_order_each_is_handled_after_the_one_before_it(start):  # noqa: F811
    stocks = [Stock.objects.create(place=f"place {n}") for n in range(4)]
    listening = start("--processes", "2", "-c", "4").ready(2)
    writers = [threading.Thread(target=count_up, args=(stock.pk,)) for stock in stocks]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    until(lambda: not Notification.objects.exists(), what="an end of all notifications")
    listening.stop()

    for stock in stocks:
        heard = Heard.objects.filter(by="audit", about__startswith=f"{stock.place}:")
        amounts = [int(one.about.rpartition(":")[2]) for one in heard.order_by("pk")]
        assert amounts == list(range(41))


def count_up(pk: int) -> None:
    try:
        for amount in range(1, 41):
            Stock.objects.filter(pk=pk).update(amount=amount)
    finally:
        connection.close()


def test_each_process_hears_what_is_broadcast_also_one_that_took_another_s_place(start):  # noqa: F811
    path = "tests.channels.shop.channels.Rang"
    listening = start("--channels", path, "--processes", "2", verb="listen").ready(2)

    first = heard_by_two()
    send(signal.SIGKILL, int(next(iter(first))))
    second = heard_by_two(but=next(iter(first)))
    listening.stop()

    assert len(first & second) == 1
    assert Heard.objects.values("about", "by").distinct().count() == Heard.objects.count()


def heard_by_two(but: str = "") -> set[str]:
    """Ring until two processes have heard one ring; return which."""
    found: set[str] = set()

    def rings() -> bool:
        nonlocal found
        notify(Rang, number=next(NUMBERS))
        heard = Heard.objects.filter(what="rang").exclude(by=but)
        latest = heard.order_by("-pk").values_list("about", flat=True).first()
        found = set(heard.filter(about=latest).values_list("by", flat=True))
        return len(found) == 2

    until(rings, what="a ring that two processes hear")
    return found
