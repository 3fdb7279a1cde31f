"""Locks behind PgBouncer in transaction mode, which forgets settings, statements and LISTEN."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, connections

from django_once.locks import acquire_task_lock, lock, release_task_lock
from django_once.models import Lock
from django_once.sql import own
from django_once.sql.lines import close_idle, line
from django_once.wakeups import releases
from tests.processes.test_pooler import PROGRAM
from tests.processes.test_pooler import pooler as pooler
from tests.processes.workers import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="PgBouncer is of PostgreSQL"),
    pytest.mark.skipif(PROGRAM is None, reason="no pgbouncer here: apt-get install pgbouncer"),
]


@pytest.fixture(autouse=True)
def behind_it(pooler):
    """Let this process reach its database through the pooler only."""
    settings = connections["default"].settings_dict
    before = settings.copy()
    own._refusing.clear()
    releases._deaf_until.clear()
    close_idle("default", 0.0)
    connection.close()
    settings.update(pooler, PASSWORD="", OPTIONS={})
    yield
    close_idle("default", 0.0)
    connection.close()
    settings.clear()
    settings.update(before)
    own._refusing.clear()
    releases._deaf_until.clear()


def test_a_lock_is_taken_renewed_and_given_back():
    with line("default") as plain:
        assert getattr(plain, "once_session", None) is None
    with lock("export", lease=1) as held:
        time.sleep(1.5)
        held.check()
    with lock("export") as again:
        assert again.fence == 2


def test_whoever_waits_has_it_soon_after_the_release():
    found = []

    def wait():
        with lock("export", wait="20s"):
            found.append(time.monotonic())

    for _ in range(3):
        with lock("export"):
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(1.5)
            released = time.monotonic()
        thread.join(20)
        assert found.pop() - released < 2.0


def test_of_many_pods_one_acquires():
    won = []

    def acquire(pod):
        if acquire_task_lock(pod, "digest:1"):
            won.append(pod)

    threads = [threading.Thread(target=acquire, args=[f"pod{n}"]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(won) == 1
    release_task_lock(won[0], "digest:1")
    until(lambda: Lock.objects.get().released_at is not None)
