"""Waiting for a lock while connections break, and through a pooler that swallows wakeups."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from django.db import connection

from django_once.locks import lock
from django_once.models import Lock
from django_once.sql.lines import line
from django_once.wakeups import releases
from tests.processes.workers import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.engine,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="others carry no wakeups"),
]


def cut_connections():
    """End every other session with this test's database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def waiting(seconds="30s"):
    """Begin to wait in a thread; return it, and what will be in its list."""
    found = []

    def wait():
        with lock("export", wait=seconds) as held:
            found.append(held.fence)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: Lock.objects.get().is_wanted, what="who waits")
    return thread, found


def test_who_waits_goes_on_when_its_connections_are_cut():
    with lock("export"):
        thread, found = waiting()
        for _ in range(3):
            cut_connections()
            time.sleep(0.05)
        assert found == []
    thread.join(30)

    assert found == [2]


def test_where_nobody_hears_it_is_not_asked_each_time(monkeypatch):
    opened = []

    class Deaf:
        def __init__(self, **_):
            opened.append(self)

        def execute(self, _sql):
            pass

        def notifies(self, timeout):
            return []

        def close(self):
            pass

    with line("default") as speaker:
        speaker.ensure_connection()
    with monkeypatch.context() as patch:
        patch.setattr(psycopg, "connect", Deaf)
        patch.setattr(releases, "_deaf_until", {})
        heard = [releases.Releases("default", "export").listen() for _ in range(3)]

    assert heard == [False] * 3
    assert len(opened) == 1
