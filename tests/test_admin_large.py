"""The admin over a large table: what a page asks, and along which index."""

from __future__ import annotations

import re
import time
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_once.admin import listing
from django_once.models import Job
from django_once.models.job import look
from tests.jobs import store_many

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

MANY = 120_000
JOBS = "/admin/once/job/"
# Each way through the list: what its address says, and the most statements about jobs.
WAYS = {
    "": 2, "p=2": 2, "o=3.-1": 2, "p=100": 2,
    "state=ready": 2, "state=running": 2, "state=scheduled": 2, "state=blocked": 2,
    "state=failed": 2, "state=successful": 2, "ended=1h": 2, "ended=30d&p=3": 2,
    "queue=low": 3, "task=shop.nobody": 3, "reason=lost": 3, "backend=default&queue=x": 3,
    "state=failed&queue=mail": 3, "q=shop.nobody": 3, "q=019a": 3,
}  # fmt: skip
# Ids grow with time, as those of jobs do; a hundredth has failed.
FILL = {
    "postgresql": (
        "(lpad(to_hex(1763500000000 + n), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid",
        "statement_timestamp() - (120001 - n) * interval '1 second'",
        "generate_series(1, 120000) AS numbers(n)",
    ),
    "sqlite": (
        "printf('%%012x7%%019x', 1763500000000 + n, n)",
        "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', printf('-%%d seconds', 120001 - n))",
        "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 120000) "
        "SELECT n FROM c) AS numbers",
    ),
    "mysql": (
        "concat(lpad(hex(1763500000000 + n), 12, '0'), '7', lpad(hex(n), 19, '0'))",
        "utc_timestamp(6) - interval (120001 - n) second",
        "(SELECT a.n * 400 + b.n + 1 AS n FROM ten AS a CROSS JOIN four AS b) AS numbers",
    ),
}


def fill() -> None:
    """Write many jobs that have ended, in one statement."""
    id, moment, numbers = FILL[connection.vendor]
    lead = ""
    if connection.vendor == "mysql":
        lead = (
            "WITH RECURSIVE ten(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM ten WHERE n < 299), "
            "four(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM four WHERE n < 399) "
        )
    columns = (
        "id, backend, task, args, queue, status, reason, return_value, fence, attempt, failures, "
        "worker_name, enqueued_at, due_at, started_at, last_attempted_at, finished_at, history"
    )
    entry = (
        '[{"at":"2026-01-01T00:00:00Z","kind":"raised","attempt":1,"worker":"ann",'
        '"error":"builtins.ValueError","traceback":""}]'
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO once_job ({columns}) {lead}"
            f"SELECT {id}, 'default', 'shop.charge', '[1]', 'mail', "
            "CASE WHEN n % 100 = 0 THEN 'FAILED' ELSE 'SUCCESSFUL' END, "
            "CASE WHEN n % 100 = 0 THEN 'raised' ELSE '' END, "
            "CASE WHEN n % 100 = 0 THEN NULL ELSE '1' END, 1, 1, "
            "CASE WHEN n % 100 = 0 THEN 1 ELSE 0 END, 'ann', "
            f"{moment}, {moment}, {moment}, {moment}, {moment}, "
            f"CASE WHEN n % 100 = 0 THEN %s ELSE '[]' END FROM {numbers}".replace(" % ", " %% "),
            [entry],
        )
        if connection.vendor != "mysql":
            cursor.execute("ANALYZE once_job")
    assert Job.objects.count() == MANY
    store_many(20)


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def large(client: Client) -> Client:
    fill()
    return client


def asked_of_jobs(queries: list[Any]) -> list[str]:
    return [query["sql"] for query in queries if "once_job" in query["sql"]]


def plan(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql.replace('%', '%%')}", [])
        return "\n".join(row[0] for row in cursor.fetchall())


def test_no_page_reads_the_whole_table(large, monkeypatch):
    monkeypatch.setattr(look, "MOST_LOOKED_AT", 10_000)
    most = 0.0
    for way, statements in WAYS.items():
        with CaptureQueriesContext(connection) as queries:
            began = time.monotonic()
            answer = large.get(f"{JOBS}?{way}", follow=True)
            most = max(most, time.monotonic() - began)
        asked = asked_of_jobs(queries.captured_queries)
        assert (answer.status_code, way) == (200, way)
        assert len(asked) <= statements, (way, asked)
        for sql in asked:
            assert "LIMIT" in sql, (way, sql)
            assert not re.search(r"\b(args|kwargs|return_value|history|meta)\b", sql), (way, sql)
            if connection.vendor == "postgresql":
                assert "Seq Scan on once_job" not in plan(sql), (way, sql, plan(sql))
    # A page that counted and sorted all of it would take longer, on any machine.
    assert most < 5


def test_a_page_says_where_it_stopped(large, monkeypatch):
    monkeypatch.setattr(look, "MOST_LOOKED_AT", 1_000)

    whole, cut = large.get(JOBS).content.decode(), large.get(f"{JOBS}?task=shop.x").content.decode()

    assert "The first 10000 jobs are listed; filters choose among the others." in whole
    assert "were looked at" not in whole
    assert (
        "Only the first 1000 jobs were looked at: a state, an end or an id leads to others." in cut
    )
    assert "0 jobs" in cut


def test_what_lies_beyond_is_not_looked_at_but_what_an_index_leads_to_is(client, monkeypatch):
    monkeypatch.setattr(look, "MOST_LOOKED_AT", 3)
    store_many(1, queue="mail")
    older, newer = store_many(1, task="shop.a")[0], store_many(3, task="shop.b")

    def listed(said: str) -> set[str]:
        text = client.get(f"{JOBS}?{said}").content.decode()
        return set(re.findall(r'name="_selected_action" value="([0-9a-f-]+)"', text))

    assert listed("task=shop.b") == set(map(str, newer))
    assert listed("task=shop.a") == set()
    assert listed("state=ready") >= {str(older)}
    assert listed(f"q={older}") == {str(older)}


def test_an_action_over_all_pages_takes_no_more_than_they_list(client, monkeypatch):
    monkeypatch.setattr("django_once.admin.jobs.MOST_LISTED", 30)
    monkeypatch.setattr(listing, "MOST_LISTED", 30)
    store_many(40)

    client.post(
        JOBS,
        {"action": "cancel_selected", "select_across": "1", "_selected_action": str(UUID(int=1))},
    )

    assert Job.objects.filter(reason="cancelled").count() == 30
