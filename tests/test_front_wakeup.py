"""An enqueue wakes workers once for each transaction, and only after it has committed."""

from __future__ import annotations

import select
import sys
from contextlib import suppress

import pytest
from django.db import connection, transaction
from django.test import TestCase

from django_once import task
from django_once.models import Job
from django_once.wakeups import listen
from django_once.wakeups.listen import CHANNEL, Listener, announce

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL has NOTIFY."),
]
in_autocommit = pytest.mark.django_db(transaction=True)


@task
def add(a):
    return a


class Undone(Exception):
    pass


@pytest.fixture
def listener(monkeypatch, transactional_db):
    monkeypatch.setattr(listen, "_announced", {})
    listening = Listener("default")
    assert listening.open()
    yield listening
    listening.close()


def heard(listener):
    """Return what was sent until now; a word of this test's own comes after all of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, 'the end')", [CHANNEL])
    words = set()
    while "the end" not in words:
        select.select([listener], [], [], 10)
        words |= listener.heard()
    return words - {"the end"}


@in_autocommit
def test_an_enqueue_is_heard_after_its_commit_and_not_before(listener):
    with transaction.atomic():
        add.enqueue(1)
        before = listener.heard()

    assert (before, heard(listener)) == (set(), {"default"})


@in_autocommit
def test_a_transaction_promises_one_wakeup_however_much_it_enqueues():
    with transaction.atomic():
        for number in range(100):
            add.enqueue(number)
            with transaction.atomic():
                add.enqueue(number)
        promised = len(connection.run_on_commit)

    assert promised == 1


@in_autocommit
@pytest.mark.parametrize("first", ["outside", "inside", "nowhere"])
def test_what_a_savepoint_takes_back_is_promised_again(listener, first):
    with transaction.atomic():
        if first == "outside":
            add.enqueue(1)
        with suppress(Undone), transaction.atomic():
            add.enqueue(2)
            if first != "inside":
                raise Undone
        add.enqueue(3)

    assert heard(listener) == {"default"}
    assert Job.objects.count() == {"outside": 2, "inside": 2, "nowhere": 1}[first]


@in_autocommit
def test_a_transaction_that_rolls_back_wakes_nobody(listener):
    with suppress(Undone), transaction.atomic():
        add.enqueue(1)
        raise Undone

    assert heard(listener) == set()


@in_autocommit
def test_an_enqueue_in_a_transaction_that_django_does_not_manage_is_heard_after_its_commit(
    listener,
):
    transaction.set_autocommit(False)
    try:
        add.enqueue(1)
        before = listener.heard()
        transaction.commit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)

    assert (before, heard(listener)) == (set(), {"default"})
    assert Job.objects.count() == 1


@in_autocommit
@pytest.mark.parametrize("is_ready", [True, False])
def test_a_wakeup_whose_server_is_away_harms_nobody(monkeypatch, is_ready):
    connection.close()

    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "HOST", "/nowhere")
        announce("default", "default", is_ready=is_ready)

    assert connection.connection is None


@in_autocommit
def test_an_older_driver_hears_nothing_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    assert Listener("default").open() is False


class CapturedTests(TestCase):
    def test_hooks_that_a_test_captures_are_its_own(self):
        with self.captureOnCommitCallbacks() as hooks:
            add.enqueue(1)
            transaction.on_commit(int)

        assert hooks == [int]
