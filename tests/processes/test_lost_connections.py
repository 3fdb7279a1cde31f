"""The database goes away and comes back: every loop backs off and goes on, and nothing is lost."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from django.db import Error, connection, connections

from django_once.models import Job
from tests.app.models import Note
from tests.invariants import violations
from tests.processes.server import NAME, Server, at_home_on
from tests.processes.tasks import hold, mark, note_once, note_stubbornly
from tests.processes.workers import ended, has_ended, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine, pytest.mark.slow]

on_a_server = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has no connections that others could end"
)
on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="a server of its own is started of PostgreSQL only"
)
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite's one writer")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def server(cluster: Server, start: Callable) -> Iterator[Server]:
    with at_home_on(cluster):
        yield cluster
        assert violations("default") == []


def cut_connections() -> int:
    """End every other session with this test's database; return how many."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return len(cursor.fetchall())
        cursor.execute(
            "SELECT id FROM information_schema.processlist "
            "WHERE db = database() AND id <> connection_id()"
        )
        found = [number for (number,) in cursor.fetchall()]
        for number in found:
            try:
                cursor.execute(f"KILL {number}")
            except Error:
                continue  # it ended by itself
        return len(found)


def patiently(fact: Callable) -> Callable:
    """Return a fact that may be asked while the database is away."""

    def asked():
        try:
            return fact()
        except Error:
            connections["default"].close()
            return None

    return asked


@on_a_server
def test_ten_times_all_connections_are_cut_and_nothing_is_lost(start, ledger):
    command = start("--processes", "2", "--concurrency", "4").ready(workers=2)
    before = command.children
    results, cuts = [], []

    for cut in range(10):
        for n in range(20):
            results.append(mark.enqueue(f"mark-{cut}-{n}"))
            results.append(note_stubbornly.enqueue(f"note-{cut}-{n}"))
            results.append(note_once.enqueue(f"once-{cut}-{n}"))
        until(lambda cut=cut: ledger.count("ran") > 20 * cut, what="some work")
        # Right after a cut there may be none: those who lost theirs wait a moment.
        cuts.append(until(cut_connections, what="a connection to cut"))
    rows = ended(*results)

    assert len(cuts) == 10
    assert command.children == before
    notes = Counter(Note.objects.values_list("text", flat=True))
    once = {tag: count for tag, count in notes.items() if tag.startswith("once")}
    assert {row.status for row in rows} == {Job.SUCCESSFUL}
    assert {tag for tag in ledger.tags() if tag.startswith("mark")} == {
        f"mark-{cut}-{n}" for cut in range(10) for n in range(20)
    }
    assert set(once.values()) == {1}
    assert len(once) == 200
    assert command.stop() == 0


@on_postgresql
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGQUIT])
def test_workers_outlive_a_restart_of_the_server(server, start, ledger, gate, way):
    command = start(databases={"default": server.settings}).ready()
    before = command.children
    held = hold.enqueue("held", str(gate))
    results = [note_stubbornly.enqueue(f"{n}") for n in range(100)]
    until(lambda: ledger.count("ran") > 10, what="some work")

    server.stop(way)
    time.sleep(1.5)
    server.start()
    gate.touch()
    until(patiently(lambda: has_ended(held, *results)), what="the ends")
    rows = ended(held, *results)
    late = ended(mark.enqueue("late"))

    assert {row.status for row in (*rows, *late)} == {Job.SUCCESSFUL}
    assert command.children == before
    assert rows[0].attempt == 1
    assert command.stop() == 0


@on_postgresql
def test_a_read_only_server_stops_the_work_and_not_the_workers(server, start, ledger):
    command = start(databases={"default": server.settings}, options={"LEASE": "2s"}).ready()
    before = command.children
    ended(mark.enqueue("before"))
    results = [mark.enqueue(f"{n}") for n in range(10)]

    server.execute(f"ALTER DATABASE {NAME} SET default_transaction_read_only = on")
    cut_connections()
    connection.close()
    time.sleep(3)  # longer than the lease: it lapses, and nobody may be declared lost for it
    server.execute(f"ALTER DATABASE {NAME} RESET default_transaction_read_only")
    cut_connections()
    connection.close()
    rows = ended(*results, mark.enqueue("after"))

    assert {row.status for row in rows} == {Job.SUCCESSFUL}
    assert command.children == before
    assert command.stop() == 0


@on_postgresql
def test_too_few_connections_make_workers_wait_and_not_fail(server, start, ledger):
    server.execute("DROP ROLE IF EXISTS narrow")
    server.execute("CREATE ROLE narrow SUPERUSER LOGIN")
    server.execute("ALTER ROLE narrow NOSUPERUSER CONNECTION LIMIT 2")
    with connection.cursor() as cursor:
        cursor.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO narrow")
        cursor.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO narrow")
    results = [mark.enqueue(f"{n}") for n in range(20)]

    command = start(databases={"default": {**server.settings, "USER": "narrow"}})
    until(lambda: "does not answer" in command.text, what="the refusal")
    assert not command.has_ended()
    server.execute("ALTER ROLE narrow CONNECTION LIMIT 100")
    rows = ended(*results)

    assert {(row.status, row.attempt) for row in rows} == {(Job.SUCCESSFUL, 1)}
    assert command.stop() == 0


@on_sqlite
def test_another_writer_of_the_file_is_waited_for(start, ledger):
    patience = {"default": {"OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 1}}}
    command = start(databases=patience, options={"LEASE": "2s"}).ready()
    before = command.children
    results = [mark.enqueue(f"{n}") for n in range(20)]

    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, timeout=20)
    other.execute("BEGIN IMMEDIATE")
    time.sleep(4)  # longer than a lease, and than the workers' patience with a lock
    other.execute("COMMIT")
    other.close()
    rows = ended(*results)

    assert {row.status for row in rows} == {Job.SUCCESSFUL}
    assert command.children == before
    assert ended(mark.enqueue("after"))[0].attempt == 1
    assert command.stop() == 0
