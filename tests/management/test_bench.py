"""`once bench`: measures beside what is there, and leaves nothing of it behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection, connections

from django_once.management.bench.base import PREFIX, database_of_its_own
from django_once.models import Job
from tests.jobs import DATABASE, store
from tests.management.shell import in_shell, once

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

LOOKS = {
    "postgresql": "SELECT count(*) FROM pg_database WHERE datname LIKE 'once_bench_%%'",
    "mysql": "SELECT count(*) FROM information_schema.schemata "
    "WHERE schema_name LIKE 'once_bench_%%'",
}


def bases() -> int:
    if connection.vendor == "sqlite":
        beside = Path(str(connection.settings_dict["NAME"])).parent
        return len(list(beside.glob(f"{PREFIX}*")))
    with connection.cursor() as cursor:
        cursor.execute(LOOKS[connection.vendor])
        return int(cursor.fetchone()[0])


def test_a_database_of_its_own_is_empty_and_gone_afterwards():
    job, before = store(), bases()

    with database_of_its_own(DATABASE):
        assert Job.objects.count() == 0
        store()
        assert bases() == before + 1 or connection.vendor == "sqlite"

    assert [one.pk for one in Job.objects.all()] == [job]
    assert bases() == before


def test_a_database_of_its_own_is_gone_when_a_measure_fails():
    before, name = bases(), connections.settings[DATABASE]["NAME"]

    with pytest.raises(ZeroDivisionError), database_of_its_own(DATABASE):
        store()
        raise ZeroDivisionError

    assert bases() == before
    assert connections.settings[DATABASE]["NAME"] == name
    assert Job.objects.count() == 0


def test_where_none_can_be_made_nothing_is_measured():
    if connection.vendor != "postgresql":
        pytest.skip("Made a role of PostgreSQL for it.")
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS once_bench_nobody")
        cursor.execute("CREATE ROLE once_bench_nobody NOCREATEDB NOSUPERUSER")
        cursor.execute("SET ROLE once_bench_nobody")
    try:
        answer = once("bench", "--yes")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")
            cursor.execute("DROP ROLE once_bench_nobody")

    assert answer.code == 1
    assert "fills no database that it did not make" in answer.err


@pytest.mark.parametrize("words", [("--jobs", 0), ("--seconds", 1e9), ("--samples", 1)])
def test_what_cannot_be_meant_is_refused(words):
    answer = once("bench", "--yes", *words)

    assert answer.code == 2
    assert "must be from" in answer.err


def test_whoever_does_not_agree_measures_nothing():
    before = bases()

    assert once("bench", answer="n\n").code == 1
    assert bases() == before


@pytest.mark.slow
def test_it_measures_and_leaves_the_jobs_that_are_there_alone():
    job = store()

    answer = in_shell(
        "bench", "--yes", "--json", "--jobs", "200", "--seconds", "0.2", "--samples", "5"
    )

    assert answer.code == 0, answer.err
    figures = {one["name"]: one["value"] for one in answer.json["figures"]}
    assert len(figures) == 5
    assert all(value > 0 for value in figures.values())
    assert [(one.pk, one.status) for one in Job.objects.all()] == [(job, "READY")]
    assert bases() == 0
