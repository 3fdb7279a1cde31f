"""Broadcasts: whoever listens hears each of them, nobody keeps them, nobody waits for anybody."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections, transaction
from django.test import override_settings

from django_once import channel_checks, compat
from django_once.channels import Channel, TriggerChannel, installing, listener, notify
from django_once.definitions import channel as definition
from django_once.definitions import listeners
from django_once.errors import InvalidOption
from django_once.models import Broadcast
from django_once.models.broadcast import forget_told
from django_once.processes.broadcaster import Broadcaster
from django_once.sql import broadcasts, on
from django_once.testing import moved_clock
from django_once.wakeups.broadcasts import line_of
from tests.channels.shop.models import Author
from tests.settings import REDIS_URL, TASKS

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

LONG = 30.0
NASTY = 'it\'s "quoted" \\ 100 % \u00e9 \U0001f600 \n'


@dataclass
class Said(Channel):
    """Told by hand."""

    text: str
    number: int = 0


@dataclass
class AuthorsChanged(TriggerChannel):
    """Told by triggers."""

    model = Author


@pytest.fixture
def carried(request):
    """Let this database carry broadcasts."""
    if connection.vendor == "postgresql":
        yield
        return
    if not REDIS_URL:
        pytest.skip("ONCE_TEST_REDIS_URL names no Redis.")
    redis = {**TASKS["default"], "OPTIONS": {"REDIS": REDIS_URL}}
    with override_settings(TASKS={**TASKS, "default": redis}):
        yield


@pytest.fixture
def heard():
    """What listeners hear while this test runs; only then are there any."""
    found: list = []
    definition._channels[definition.name_of(Said)] = Said
    definition._channels[definition.name_of(AuthorsChanged)] = AuthorsChanged
    yield found
    for channel in (Said, AuthorsChanged):
        definition.forget(channel)
        listeners.remove(channel)


definition.forget(Said)
definition.forget(AuthorsChanged)


@contextmanager
def listening(*channels, most=10_000):
    """Yield what hears these channels in two threads of its own, as a process would."""
    settings = compat.task_backends["default"].settings
    broadcaster = Broadcaster(settings, channels, most)

    def apart(work):
        try:
            work()
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=apart, args=[work]) for work in (broadcaster.hear, broadcaster.call)
    ]
    for thread in threads:
        thread.start()
    try:
        assert broadcaster.is_listening.wait(LONG)
        yield broadcaster
    finally:
        broadcaster.stop()
        for thread in threads:
            thread.join(LONG)


def until(holds):
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "It did not come."
        time.sleep(0.01)


def test_each_who_listens_hears_each_also_of_equal_ones(carried, heard):
    @listener(Said)
    def hear(text, number):
        heard.append((text, number))

    with listening(Said) as one, listening(Said) as other:
        with transaction.atomic():
            for _ in range(200):
                notify(Said, text=NASTY, number=7)
        until(lambda: one.heard == other.heard == 200)

    assert set(heard) == {(NASTY, 7)}


def test_what_is_rolled_back_is_heard_by_nobody(carried, heard):
    @listener(Said)
    def hear(text, number):
        heard.append(text)

    with listening(Said) as one:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            notify(Said, text="never")
            raise ZeroDivisionError
        notify(Said, text="kept")
        until(lambda: one.heard)

    assert heard == ["kept"]


@pytest.mark.parametrize("size", [7_800, 8_000, 20_000, 1_000_000])
def test_what_is_long_is_heard_whole(carried, heard, size):
    @listener(Said)
    def hear(text, number):
        heard.append(text)

    with listening(Said) as one:
        notify(Said, text="\u00e9" * (size // 2))
        until(lambda: one.heard)

    assert heard == ["\u00e9" * (size // 2)]


def test_what_was_too_long_is_deleted_when_everybody_had_the_time_to_read_it(heard):
    if connection.vendor != "postgresql":
        pytest.skip("Only a NOTIFY is too short.")
    notify(Said, text="x" * 10_000)

    assert (Broadcast.objects.count(), forget_told("default")) == (1, 0)
    with moved_clock("2h"):
        assert forget_told("default") == 1


def test_a_listener_that_raises_ends_neither_the_others_nor_the_next(carried, heard):
    @listener(Said)
    def hear(text, number):
        if number == 1:
            raise ValueError(text)
        heard.append(number)

    with listening(Said) as one:
        for number in range(3):
            notify(Said, text="", number=number)
        until(lambda: one.heard == 2)

    assert (heard, one.failed) == ([0, 2], 1)


def test_a_stuck_listener_keeps_nobody_from_writing_and_hears_again(carried, heard):
    go_on = threading.Event()

    @listener(Said)
    def hear(text, number):
        go_on.wait(LONG)
        heard.append(number)

    with listening(Said, most=50) as stuck:
        for number in range(500):
            notify(Said, text="x" * 6_000, number=number)
        until(lambda: stuck.dropped >= 449)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notification_queue_usage()")
                assert cursor.fetchone()[0] < 0.001
        go_on.set()
        until(lambda: heard and heard[-1] == 499)

    assert len(heard) + stuck.dropped == 500


def test_a_session_that_reads_nothing_is_ended_before_it_fills_the_server():
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL keeps notifications for who does not read them.")
    import psycopg

    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    parameters["application_name"] = broadcasts.SESSION
    with psycopg.connect(**parameters, autocommit=True) as deaf:
        deaf.execute(f"LISTEN {line_of('deaf')}")

        def ended() -> bool:
            with connection.cursor() as cursor:
                for _ in range(100):
                    cursor.execute("SELECT once_tell(%s, %s)", [line_of("deaf"), "x" * 7_000])
            return broadcasts.end_deaf(on("default"), full=0.0) == 1

        until(ended)


def test_a_line_that_was_cut_is_heard_again(heard):
    if connection.vendor != "postgresql":
        pytest.skip("Sessions are cut on PostgreSQL.")

    @listener(Said)
    def hear(text, number):
        heard.append(number)

    with listening(Said) as one:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name = %s AND datname = current_database()",
                [broadcasts.SESSION],
            )
            assert cursor.fetchone()[0] == 1
        told = iter(range(10_000))

        def is_heard():
            notify(Said, text="", number=next(told))
            return one.heard

        until(is_heard)


def test_changes_of_a_model_are_heard_where_they_were_committed(carried, heard):
    @listener(AuthorsChanged)
    def hear(old, new):
        heard.append((old and old.name, new and new.name))

    try:
        installing.install("default")
        with listening(AuthorsChanged) as one:
            with transaction.atomic():
                Author.objects.create(name="nobody")
                transaction.set_rollback(True)
            author = Author.objects.create(name=NASTY)
            until(lambda: one.heard == 1)
            Author.objects.filter(pk=author.pk).update(name="x" * 200)
            until(lambda: one.heard == 2)
            author.delete()
            until(lambda: one.heard == 3)
    finally:
        listeners.remove(AuthorsChanged)
        installing.install("default")

    assert heard == [(None, NASTY), (NASTY, "x" * 200), ("x" * 200, None)]


def test_E013_where_nothing_carries_broadcasts_it_is_said_at_once(heard):
    if connection.vendor == "postgresql":
        pytest.skip("PostgreSQL carries broadcasts itself.")
    listener(Said)(lambda text, number: None)
    sentence = "carries no broadcasts: name OPTIONS['REDIS'] of its backend, or say"

    with pytest.raises(InvalidOption, match="carries no broadcasts"):
        notify(Said, text="")
    with pytest.raises(CommandError, match="carries no broadcasts"):
        call_command("once", "listen", "--channels", definition.name_of(Said))

    (found,) = (one for one in channel_checks.check_channels() if one.id == "once.E013")
    assert sentence in found.msg


def test_a_line_fits_however_long_the_name_of_its_channel_is():
    far = make_dataclass("Far" * 40, [("a", int)], bases=(Channel,))
    definition.forget(far)

    assert len(line_of(definition.name_of(far))) <= 63
    assert line_of("a") != line_of("b")
