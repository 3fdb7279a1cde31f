"""Handling: all listeners of a group or none, again after a failure, and what nobody can handle."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Q
from django.test import override_settings

from django_once import calls
from django_once.channels import (
    handling,
    installing,
    notify,
    process_stored_notifications,
    replay,
    schema,
    set_notification_context,
)
from django_once.definitions import channel as definitions
from django_once.definitions import listeners as hearing
from django_once.definitions import registry
from django_once.definitions.listeners import Listener
from django_once.models import Job, Notification
from django_once.models.job.claim import Walk
from django_once.models.job.explain import explain
from django_once.models.job.settle import settle, what_became
from django_once.models.notification import admit_next, admit_overlooked, forget_kept
from django_once.models.series import Series
from django_once.models.worker import fresh_holder, register
from django_once.sql.values import Outcome
from django_once.testing import moved_clock, run_jobs
from tests.channels.shop import listeners
from tests.channels.shop.channels import (
    AuthorChannel,
    EverythingChannel,
    OrderPlaced,
    StockChannel,
)
from tests.channels.shop.models import Author, Everything, Heard, Post, Stock
from tests.settings import TASKS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_heard(monkeypatch):
    listeners.handed.clear()
    listeners.failing.clear()
    monkeypatch.setattr(hearing, "_listeners", list(hearing._listeners))
    yield
    set_notification_context({})


def test_several_listeners_hear_one_notification_in_their_order():
    notify(OrderPlaced, order_id=7, note="it's")

    ran = run_jobs()

    assert ran == 1
    assert list(Heard.objects.order_by("pk").values_list("by", "about")) == [
        ("confirm", "7:it's"), ("count", "7"),
    ]  # fmt: skip


def test_a_failing_listener_leaves_nothing_and_is_called_again():
    listeners.failing.append(ValueError("not today"))
    Author.objects.create(name="Ada")

    run_jobs()
    waiting = Notification.from_channel(AuthorChannel).get()
    written = Post.objects.count()
    listeners.failing.clear()
    with moved_clock("5s"):
        run_jobs()

    assert (waiting.status, waiting.failures, written) == (Job.READY, 1, 0)
    assert Post.objects.count() == 1
    assert not Notification.objects.exists()


def test_what_fails_for_good_is_a_dead_letter_that_can_be_handled_again():
    listeners.failing.append(ValueError("never"))
    Author.objects.create(name="Ada")
    with moved_clock() as clock:
        for _ in range(3):
            run_jobs()
            clock.advance("1m")
    dead = Notification.from_channel(AuthorChannel).get()
    listeners.failing.clear()

    count = replay(AuthorChannel)
    run_jobs()

    assert (dead.status, dead.failures, dead.event) == (Job.FAILED, 3, "post_insert")
    assert count == 1
    assert Post.objects.count() == 1


def test_a_context_is_told_to_who_asks_for_it():
    set_notification_context({"content": 'it\'s "you" \\ % ☃'})
    Author.objects.create(name="Ada")
    set_notification_context({})
    Author.objects.create(name="Bob")

    run_jobs()

    assert sorted(Post.objects.values_list("content", flat=True)) == [
        "Welcome!", "it's \"you\" \\ % ☃",
    ]  # fmt: skip


def test_a_context_of_a_transaction_ends_with_it():
    with pytest.raises(RuntimeError, match="outside of one"):
        set_notification_context({"content": "x"}, lasts="transaction")
    with transaction.atomic():
        set_notification_context({"content": "mine"}, lasts="transaction")
        Author.objects.create(name="Ada")
    Author.objects.create(name="Bob")

    run_jobs()

    assert sorted(Post.objects.values_list("content", flat=True)) == ["Welcome!", "mine"]


def test_a_context_in_a_broken_transaction_is_nobodys():
    with transaction.atomic():
        transaction.set_rollback(True)
        set_notification_context({"content": "lost"})
    Author.objects.create(name="Ada")

    run_jobs()

    assert Post.objects.get().content == "Welcome!"


def test_a_worker_that_does_not_know_the_channel_leaves_its_notifications(monkeypatch):
    notify(OrderPlaced, order_id=1)
    path = definitions.words_of(OrderPlaced).path_of("default")
    with monkeypatch.context() as patch:
        known = {one: tasks for one, tasks in registry._tasks.items() if one != path}
        patch.setattr(registry, "_tasks", known)
        run_jobs()
        left = Notification.objects.get()

    run_jobs()

    assert (left.status, left.blocked_by) == (Job.READY, "unknown_task")
    assert Heard.objects.count() == 2


class OnlySeven:
    def get_filter(self) -> Q:
        return Q(kwargs__contains='\\"order_id\\":7')


class OnlySevenByPayload:
    def get_filter(self) -> Q:
        return Q(payload__kwargs__order_id=7)


@pytest.mark.parametrize("chosen", [OnlySeven, OnlySevenByPayload])
def test_a_filter_leaves_what_it_does_not_match(chosen):
    options = {"LISTENER_FILTER": f"{__name__}.{chosen.__name__}"}
    notify(OrderPlaced, order_id=7)
    notify(OrderPlaced, order_id=8)

    try:
        with override_settings(
            TASKS={**TASKS, "default": {**TASKS["default"], "OPTIONS": options}}
        ):
            handling.declare_tasks(OrderPlaced)
            run_jobs()
    finally:
        handling.declare_tasks(OrderPlaced)

    assert Heard.objects.filter(by="count").get().about == "7"
    left = Notification.objects.get()
    assert (left.status, left.reason, left.attempt) == (Job.READY, "snoozed", 0)


def test_what_newer_code_wrote_is_left_to_newer_workers():
    MigrationRecorder(connection).record_applied("shop", "0099_of_a_newer_release")
    try:
        installing.install("default")
        Author.objects.create(name="Ada")
        run_jobs()
        left = Notification.objects.get()
    finally:
        MigrationRecorder(connection).record_unapplied("shop", "0099_of_a_newer_release")
        installing.install("default")

    with moved_clock("10s"):
        run_jobs()

    assert left.db_version == "0099_of_a_newer_release"
    assert (left.status, left.reason) == (Job.READY, "snoozed")
    # It was taken back, so nobody is newer.
    assert Post.objects.count() == 1
    assert "shop" not in schema.applied("default")


def test_an_async_listener_is_awaited():
    async def hear(order_id: int, **rest: Any) -> None:
        await Heard.objects.acreate(what="async", about=str(order_id))

    hearing.add(Listener(OrderPlaced, hear, frozenset({"told"}), "default"))
    notify(OrderPlaced, order_id=3)

    run_jobs()

    assert Heard.objects.get(what="async").about == "3"


def test_what_is_kept_goes_when_its_time_is_over():
    Everything.objects.create(name="kept")
    run_jobs()

    early = forget_kept("default", "default")
    with moved_clock("25h"):
        late = forget_kept("default", "default")

    assert (early, late) == (0, 1)
    assert not Notification.from_channel(EverythingChannel).exists()


def test_two_writers_of_one_key_follow_each_other():
    first = Stock.objects.create(place="a", amount=0)
    second = Stock.objects.create(place="a", amount=0)
    run_jobs()
    Heard.objects.all().delete()
    writers = [threading.Thread(target=write, args=(one.pk, 25)) for one in (first, second)]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    turns = list(
        Notification.from_channel(StockChannel)
        .filter(task__endswith=":audit")
        .order_by("generation")
        .values_list("generation", flat=True)
    )
    ready = Notification.from_channel(StockChannel).filter(blocked_by="").count()
    run_jobs()

    assert turns == list(range(turns[0], turns[0] + 50))
    assert ready == 2
    assert Heard.objects.filter(by="audit").count() == 50


def write(pk: int, times: int) -> None:
    try:
        for amount in range(times):
            Stock.objects.filter(pk=pk).update(amount=amount)
    finally:
        connection.close()


def test_the_next_of_an_order_is_not_admitted_while_a_writer_holds_the_key():
    Stock.objects.create(place="a", amount=0)
    key = Notification.objects.values_list("order_key", flat=True).first()
    held, ended = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic():
                Series.objects.select_for_update().filter(key=key).update(cancelled_at=None)
                held.set()
                ended.wait(30)
        finally:
            connection.close()

    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer.")
    writer = threading.Thread(target=hold)
    writer.start()
    assert held.wait(30)
    while_held = admit_next("default", "default", [key])
    ended.set()
    writer.join()

    assert while_held == (0, {key})
    assert admit_next("default", "default", [key]) == (0, set())


def test_what_was_overlooked_is_admitted_by_the_sweep():
    stock = Stock.objects.create(place="a", amount=0)
    Stock.objects.filter(pk=stock.pk).update(amount=1)
    Notification.objects.filter(blocked_by="").delete()

    admitted = admit_overlooked("default", "default")
    again = admit_overlooked("default", "default")

    assert (admitted, again) == (2, 0)
    assert run_jobs() == 2


def test_to_process_what_is_stored_is_asked_of_known_channels():
    process_stored_notifications()
    process_stored_notifications([AuthorChannel, "tests.channels.shop.channels.OrderPlaced"])


def test_what_waits_in_an_order_says_for_whom():
    stock = Stock.objects.create(place="a", amount=0)
    Stock.objects.filter(pk=stock.pk).update(amount=1)
    first, second = Notification.objects.filter(task__endswith=":audit").order_by("generation")

    said = explain("default", second.pk, calls.of_job)

    assert str(first.pk) in said.says


def test_a_success_that_is_not_kept_takes_its_row_away_once():
    notify(OrderPlaced, order_id=1)
    holder = fresh_holder("one", "default")
    register("default", holder, timedelta(hours=1))
    (attempt,) = Walk("default", holder, ["*"]).claim(1)
    outcome = Outcome(
        id=attempt.id, claim=attempt.claim, status=Job.SUCCESSFUL, return_value="null", ran=0.1,
        removed=attempt.is_removed,
    )  # fmt: skip
    asked = [(attempt.id, attempt.claim)]

    held = what_became("default", asked, [attempt.id])
    first, second = settle("default", [outcome]), settle("default", [outcome])

    assert held == {attempt.id: "held"}
    assert (first, second) == (set(), {attempt.id})
    assert not Notification.objects.exists()
    # Whose answer was lost learns that it had ended; of another job that it is another's.
    assert what_became("default", asked, [attempt.id]) == {attempt.id: "settled"}
    assert what_became("default", asked) == {attempt.id: "superseded"}
