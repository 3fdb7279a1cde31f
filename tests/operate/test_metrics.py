"""The figures for Prometheus: well-formed, true, and cheap whatever the number of jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from django_once import counting
from django_once.contrib.prometheus.text import GAUGE, Family, quantiles, written
from django_once.models import Figure, Schedule
from django_once.models.figure import write_down
from django_once.models.job.settle import settle
from django_once.processes import ends
from django_once.processes.ends import Ended
from tests.jobs import a_worker, another_try, claim, claim_one, failure, in_threads, store, success
from tests.management.shell import once
from tests.operate.exposition import judged, read

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.urls("tests.operate.urls"),
]
EVIL = 'a"b\\c\nd'


@pytest.fixture(autouse=True)
def nothing_counted():
    counting.forget()
    yield
    counting.forget()


def measured() -> str:
    answer = Client().get("/metrics/")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "no-store" in answer["Cache-Control"]
    return answer.content.decode()


def value(text: str, name: str, **labels: Any) -> float | None:
    wanted = {(key, str(one)) for key, one in labels.items()}
    found = [one.value for one in read(text)[0]
             if one.name == f"django_once_{name}" and wanted <= one.labels]  # fmt: skip
    assert len(found) <= 1, found
    return found[0] if found else None


def busy() -> None:
    worker = a_worker("ann", queues='["*"]', concurrency=4)
    ended = []
    for outcome in (success, failure, another_try):
        store(task=f"shop.{EVIL}")
        attempt = claim(worker, 1)[0]
        ended.append(Ended(attempt, outcome(attempt), ValueError("no")))
    settle("default", [one.outcome for one in ended if one.outcome])
    counting.count(ends.counted(ended, set()))
    write_down("default", "default")
    store(queue=f"mail{EVIL}"[:12])
    store(run_after=timedelta(hours=1))
    Schedule.objects.create(name=f"nightly{EVIL}", task="x", cron="0 0 * * *", fired=3, skipped=2)
    a_worker("bob", lease=timedelta(seconds=-5))


def test_the_text_is_what_a_linter_wants_whatever_names_hold():
    busy()

    text = measured()

    assert judged(text) == []
    assert 'task="shop.a\\"b\\\\c\\nd"' in text
    assert once("metrics").out.count("# TYPE") == text.count("# TYPE")


def test_an_empty_site_has_figures_too():
    assert judged(measured()) == []
    assert value(measured(), "leases_lost_total", backend="default") == 0


def test_figures_are_those_of_the_work():
    busy()

    text = measured()

    attempts = {dict(one.labels)["outcome"]: one.value for one in read(text)[0]
                if one.name == "django_once_tasks_total"}  # fmt: skip
    assert attempts == {"successful": 1, "failed": 1, "retried": 1}
    assert value(text, "jobs", backend="default", queue="default", state="scheduled") == 1
    assert value(text, "workers", backend="default", state="alive") == 1
    assert value(text, "workers", backend="default", state="lapsed") == 1
    assert value(text, "slots", backend="default") == 4
    assert value(text, "firings_total", outcome="fired") == 3
    assert value(text, "firings_total", outcome="skipped") == 2
    oldest = value(text, "oldest_ready_seconds", backend="default", queue="default")
    assert oldest is not None
    assert oldest >= 0
    assert value(text, "run_seconds", queue="default", quantile="0.5") is not None
    if connection.vendor != "sqlite":
        assert value(text, "horizon_age_seconds", database="default") is not None


def test_what_was_counted_is_added_once_however_many_write_at_once():
    def add() -> None:
        write_down("default", "default")

    for _ in range(40):
        counting.count([counting.Label(counting.ATTEMPTS, "t", "q", "successful")] * 5)
    in_threads(*[add] * 4)
    counting.count([counting.Label(counting.ATTEMPTS, "t", "q", "successful")])
    write_down("default", "default")

    assert Figure.objects.get(name="attempts").value == 201
    assert write_down("default", "default") == 0


def test_labels_that_rows_could_invent_are_counted_together():
    for n in range(counting.MOST + 10):
        counting.count([counting.Label(counting.ATTEMPTS, f"task{n}", "q", "failed")])

    taken = counting.take()

    assert len(taken) <= counting.MOST
    assert sum(taken.values()) == counting.MOST + 10


def test_a_look_costs_a_fixed_number_of_queries():
    busy()
    with CaptureQueriesContext(connection) as few:
        measured()
    for _ in range(30):
        store(queue="more")
        settle("default", [success(claim_one())])

    with CaptureQueriesContext(connection) as more:
        measured()

    assert len(more) <= len(few) <= 25


def test_only_a_look_is_answered():
    assert Client().post("/metrics/").status_code == 405
    assert Client().head("/metrics/").status_code == 200


def test_a_database_that_does_not_answer_is_a_503():
    from tests.settings import TASKS

    with override_settings(TASKS=TASKS):
        connection.close()
        name = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = "/nowhere/at/all"
        try:
            assert Client().get("/metrics/").status_code == 503
        finally:
            connection.close()
            connection.settings_dict["NAME"] = name


def test_numbers_and_shares_are_written_as_they_are_read():
    family = Family("x", GAUGE, "Of a \\ and\na line.")
    family.set(0.25, a="b")
    family.set(float("nan"), a="c")
    family.set(3.0)

    assert written([family]).splitlines() == [
        r"# HELP django_once_x Of a \\ and\na line.",
        "# TYPE django_once_x gauge",
        "django_once_x 3",
        'django_once_x{a="b"} 0.25',
    ]
    assert quantiles([3, 1, 2, 4], (0.5, 0.99)) == {0.5: 2, 0.99: 4}
