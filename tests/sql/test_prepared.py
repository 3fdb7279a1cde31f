"""The INSERT that is prepared on the caller's line: when it is, and that nobody notices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_once.models import Job
from django_once.models.job.enqueue import enqueue
from django_once.sql import prepared
from tests.jobs import DATABASE, new_job, row

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]
INSERT = "INSERT INTO once_job"
PREPARED = f"SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '{INSERT}%'"


@pytest.fixture(autouse=True)
def a_line_of_its_own(transactional_db):
    if connection.vendor != "postgresql" or connection.Database.__name__ != "psycopg":
        pytest.skip("Only psycopg prepares.")
    connection.close()
    yield
    connection.close()


def enqueued(times: int) -> list[Job]:
    jobs = [new_job(args=f'["{n} \\" \\\\ %s é"]') for n in range(times)]
    for job in jobs:
        assert enqueue(DATABASE, job).is_ready
    found = [row(job.id) for job in jobs]
    assert [one.args for one in found] == [job.args for job in jobs]
    return found


def prepared_statements() -> int:
    with connection.cursor() as cursor:
        cursor.execute(PREPARED)
        return int(cursor.fetchone()[0])


def test_the_same_insert_is_prepared_after_a_few_and_stores_the_same():
    enqueued(prepared.THRESHOLD)
    assert prepared_statements() == 0

    enqueued(3)

    assert prepared_statements() == 1


def test_every_kind_of_wish_is_stored_alike_before_and_after():
    at = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    wishes = [
        {"run_after": timedelta(minutes=5)}, {"run_after": at}, {"priority": -100},
        {"expires": timedelta(hours=1)}, {"expires": timedelta(hours=1), "run_after": at},
        {"timeout": 2.5, "max_attempts": 70_000, "meta": '{"a":1}', "key": "a key"},
    ]  # fmt: skip
    names = [field.name for field in Job._meta.fields if field.name not in (
        "id", "position", "enqueued_at")]  # fmt: skip

    def stored() -> list[dict[str, object]]:
        jobs = [new_job(**wish) for wish in wishes]
        with transaction.atomic():
            for job in jobs:
                enqueue(DATABASE, job)
        found = [row(job.id) for job in jobs]
        return [
            {
                name: (value - one.enqueued_at).total_seconds()
                if name in ("due_at", "expires_at", "run_after") and value and value != at
                else value
                for name in names
                for value in [getattr(one, name)]
            }
            for one in found
        ]

    before = stored()
    enqueued(prepared.THRESHOLD)
    after = stored()

    assert prepared_statements() > 1
    for one, other in zip(before, after, strict=True):
        assert one.pop("expires_at") == pytest.approx(other.pop("expires_at"), abs=0.5)
        assert one == other


def test_what_looks_at_statements_sees_the_prepared_one():
    enqueued(prepared.THRESHOLD + 1)
    seen = []

    def look(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        enqueue(DATABASE, new_job())
    with CaptureQueriesContext(connection) as queries:
        enqueue(DATABASE, new_job())

    assert [sql.split(" (")[0] for sql in seen] == ["INSERT INTO once_job"]
    assert sum("INSERT INTO once_job" in query["sql"] for query in queries) == 1


@pytest.mark.parametrize("words", ["DISCARD ALL", "DEALLOCATE ALL", "SELECT 1; DISCARD PLANS"])
def test_it_survives_whatever_the_caller_forgets(words):
    enqueued(prepared.THRESHOLD + 2)

    with connection.cursor() as cursor:
        cursor.execute(words)

    with transaction.atomic():
        enqueued(2)


def test_it_survives_that_somebody_forgets_it_behind_the_drivers_back():
    enqueued(prepared.THRESHOLD + 2)
    connection.connection.pgconn.exec_(b"DEALLOCATE ALL")

    enqueued(3)


def test_it_survives_rollbacks():
    enqueued(prepared.THRESHOLD + 2)

    for _ in range(3):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            enqueue(DATABASE, new_job())
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                enqueue(DATABASE, new_job())
                raise ZeroDivisionError
            enqueue(DATABASE, new_job())
            raise ZeroDivisionError
        enqueued(1)

    assert Job.objects.count() == prepared.THRESHOLD + 5


def test_it_survives_a_change_of_the_table():
    enqueued(prepared.THRESHOLD + 2)

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE once_job ADD COLUMN spare_for_a_test integer")
    try:
        enqueued(2)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE once_job DROP COLUMN spare_for_a_test")
    enqueued(2)


def test_a_line_whose_server_is_another_process_each_time_prepares_nothing():
    enqueued(1)
    raw = connection.connection

    for _ in range(prepared.THRESHOLD + 1):
        prepared._count(raw, raw.info.backend_pid + 1)

    enqueued(prepared.THRESHOLD + 1)
    assert prepared_statements() == 0


def test_settings_can_say_no():
    settings_dict = connection.settings_dict
    options = settings_dict["OPTIONS"]
    settings_dict["OPTIONS"] = {**options, "prepare_threshold": None}
    try:
        enqueued(prepared.THRESHOLD + 2)
        assert prepared_statements() == 0
    finally:
        settings_dict["OPTIONS"] = options
