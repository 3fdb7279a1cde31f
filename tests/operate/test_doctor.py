"""The doctor finds what was broken on purpose, and says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from django_once import compat
from django_once.clock import Now
from django_once.models import Schedule
from django_once.models.schedule import edit
from django_once.models.worker import Worker
from django_once.scheduling import editing
from django_once.testing import moved_clock
from tests.jobs import a_worker, store
from tests.management.shell import in_shell, once
from tests.schedules.rows import a_schedule, fire_all

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def examined(*words: object) -> list[dict[str, Any]]:
    """Return what is wrong."""
    answer = once("doctor", "--json", "--backend", "default", *words)
    assert answer.code in (0, 1), answer.err
    findings = answer.json["findings"]
    wrong = [one for one in findings if one["level"] in ("warning", "error")]
    assert answer.code == (1 if wrong else 0)
    assert all(one["remedy"] for one in wrong)
    return wrong


def found(name: str, *words: object, part: str = "") -> dict[str, Any]:
    """Return what is wrong under this name, or that of it which says so."""
    wrong = examined(*words)
    meant = [one for one in wrong if one["name"] == name and part in one["says"] + one["remedy"]]
    assert meant, wrong
    return meant[0]


@contextmanager
def said(**options: Any) -> Iterator[None]:
    """Let the backend `default` have these options beside its own."""
    tasks = deepcopy(settings.TASKS)
    tasks["default"]["OPTIONS"] = {**tasks["default"].get("OPTIONS", {}), **options}
    with override_settings(TASKS=tasks):
        yield


@contextmanager
def another_line() -> Iterator[Any]:
    """Lend a second connection to the same database."""
    line: Any = connections["default"].copy("another")
    try:
        yield line
    finally:
        line.close()


def vacuumed() -> None:
    """Take away what other tests have left dead, where nobody may have done so."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")


def test_a_healthy_system_has_no_finding():
    a_worker("ann", queues='["*"]', concurrency=4)
    store()

    vacuumed()
    # Tasks of other tests are not well meant.
    aside = override_settings(SILENCED_SYSTEM_CHECKS=["once.W008", "once.W013"])
    with aside, said(LEASE="60s"):
        answer = once("doctor", "--backend", "default", "--long", "1h")

    # A server that is made for tests may have it off.
    told = [line for line in answer.lines if not re.search("[Aa]utovacuum", line)]
    assert {line.split()[0] for line in told[:-2]} == {"✓"}, answer.out
    if told == answer.lines:
        assert (answer.lines[-1], answer.code) == ("All is well.", 0)


def test_a_setting_that_is_misspelled():
    with said(LEESE="1m"):
        one = found("once.E002")

    assert one["level"] == "error"
    assert "Did you mean 'LEASE'?" in one["remedy"]


def test_a_migration_that_is_not_applied():
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("once", "0001_initial")
    try:
        one = found("migrations")
    finally:
        recorder.record_applied("once", "0001_initial")

    assert "lacks 1 migration of django_once" in one["says"]
    assert one["remedy"] == "Run: python manage.py migrate"


def test_a_connection_that_is_set_up_wrongly(monkeypatch):
    options = connection.settings_dict["OPTIONS"]
    if connection.vendor == "sqlite":
        monkeypatch.setitem(options, "transaction_mode", "DEFERRED")
        assert "IMMEDIATE" in found("once.W003")["remedy"]
        return
    monkeypatch.setitem(options, "isolation_level", 4 if connection.vendor == "postgresql"
                        else "serializable")  # fmt: skip
    assert "SERIALIZABLE" in found("once.W006")["says"]


def test_clocks_that_disagree():
    with moved_clock("1h"):
        one = found("clock")

    assert "is 59 m ahead of" in one["says"] or "is 1 h ahead of" in one["says"]
    assert 3590 < one["evidence"]["skew_seconds"] < 3610


def test_a_queue_without_a_worker():
    store(queue="mail")
    a_worker("ann", queues='["default"]')

    one = found("work")

    assert "Queue 'mail' has 1 job that could run" in one["says"]
    assert "once worker --queues mail" in one["remedy"]


def test_a_lease_that_lapsed():
    a_worker("ann", lease=timedelta(seconds=-90))

    assert "has not renewed its lease" in found("work")["says"]


def test_a_lease_that_is_too_short_and_one_that_workers_cannot_keep():
    with said(LEASE="5s"):
        found("lease length", part="Set it to 15 s or longer")
    worker = a_worker("ann", queues='["*"]')
    Worker.objects.filter(pk=worker.id).update(renewed_at=Now() - timedelta(seconds=50))
    with said(LEASE="60s"):
        one = found("lease length", part="Set it to 2 m or longer")
    assert one["evidence"]["safe_seconds"] >= 150


def test_schedules_that_never_fire():
    Schedule.objects.create(name="never", task="tests.app.tasks.add", cron="0 0 30 2 *")
    Schedule.objects.create(name="unknown", task="tests.nowhere", cron="0 * * * *")
    Schedule.objects.create(name="unfired", task="tests.app.tasks.add", every=60.0)
    fire_all()
    with moved_clock("1h"):
        wrong = once("doctor", "--json", "--backend", "default").json["findings"]

    told = {one["evidence"].get("schedule"): one for one in wrong if one["name"] == "schedules"}
    assert len(edit.every("default")) >= 3
    assert "names no moment" in told["never"]["says"] or "cannot be" in told["never"]["says"]
    assert "nobody did it" in told["unfired"]["says"]
    assert "once scheduler" in told["unfired"]["remedy"]
    assert told["unknown"]["remedy"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite does not say who reads")
def test_a_transaction_that_stays_open_and_who_holds_it():
    with another_line() as line:
        line.set_autocommit(False)
        with line.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM once_job")
            if connection.vendor == "mysql":
                cursor.execute("SELECT * FROM once_job LIMIT 1 FOR UPDATE")
            process = "SELECT pg_backend_pid()" if connection.vendor == "postgresql" else (
                "SELECT connection_id()")  # fmt: skip
            cursor.execute(process)
            ((pid,),) = cursor.fetchall()
        answer = once("doctor", "--json", "--backend", "default", "--long", "0").json
        line.rollback()

    mine = [one for one in answer["findings"] if one["evidence"].get("pid") == str(pid)]
    assert len(mine) == 1, answer
    assert mine[0]["level"] == "warning"
    assert str(pid) in mine[0]["remedy"]
    assert mine[0]["evidence"]["user"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has these")
def test_dead_rows_and_a_table_that_is_never_vacuumed():
    vacuumed()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE once_worker SET (autovacuum_enabled = false)")
        found("vacuum", part="Autovacuum is off for once_worker")
        cursor.execute("ALTER TABLE once_worker RESET (autovacuum_enabled)")
        cursor.execute(
            "INSERT INTO once_series (key) SELECT 'dead:' || n FROM generate_series(1, 11000) n"
        )
        cursor.execute("DELETE FROM once_series")
        # Statistics travel when a session is idle; this one is asked at once.
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT 1")
        one = found("dead rows")

    assert one["evidence"]["dead"] >= 11_000
    assert "VACUUM once_series" in one["remedy"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has LISTEN")
def test_a_wakeup_that_does_not_come_through(monkeypatch):
    connection.ensure_connection()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")

    assert "refused a LISTEN" in found("wakeup")["says"]


@pytest.mark.slow
def test_a_database_that_is_away_is_a_finding_and_the_exit_status():
    away = {
        "sqlite": {"NAME": "/nowhere/at/all.sqlite3"},
        "postgresql": {"HOST": "127.0.0.1", "PORT": "1"},
        "mysql": {"HOST": "127.0.0.1", "PORT": "1"},
    }[connection.vendor]

    answer = in_shell("doctor", "--json", "--backend", "default", default=away)

    assert answer.code == 3
    assert [one["name"] for one in answer.json["findings"] if one["level"] == "error"] == [
        "reachable"
    ]


def test_a_project_that_names_no_backend_of_ours():
    with override_settings(
        TASKS={"default": {"BACKEND": f"{compat.LOGGER}.backends.dummy.DummyBackend"}}
    ):
        answer = once("doctor", "--json")

    assert answer.code == 1
    assert [one["name"] for one in answer.json["findings"]] == ["settings"]


def test_a_database_that_is_not_there_is_a_finding_and_no_traceback():
    with said(DATABASE="nowhere"):
        assert "is 'nowhere'" in found("once.E004")["says"]


def test_a_schedule_that_is_paused_for_good_and_what_is_paused_by_hand():
    schedule = a_schedule("nightly", due=3600)
    editing.pause("default", schedule.pk, "bank holiday", None)
    once("pause", "queue", "mail", "--reason", "migration")

    one = found("schedules")
    notes = [note for note in once("doctor", "--json").json["findings"] if note["level"] == "note"]

    assert "is paused until it is resumed" in one["says"]
    assert "bank holiday" in one["says"]
    assert one["remedy"] == "python manage.py once schedules resume nightly"
    assert any("queue 'mail'" in note["says"] for note in notes)
