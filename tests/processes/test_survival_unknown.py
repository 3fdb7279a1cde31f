"""Lines that are cut at a COMMIT: what became of it is asked, and nothing is guessed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction

from django_once.models import Job
from django_once.testing import run_jobs
from tests.app.models import Note
from tests.processes.tasks import mark, mark_at_most_once, note_once
from tests.processes.workers import ended, until
from tests.proxy import Proxy
from tests.survival.bodies import hold_once

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.engine,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="The proxy reads its messages."),
]

ENVIRONMENT = {"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
CLAIM = "fence = job.fence + 1"
SETTLE = "return_value = o.value"
START = "last_attempted_at IS NULL"
BEGUN = "SET status = 'SUCCESSFUL'"
BOTH = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    host, port = connection.settings_dict["HOST"], connection.settings_dict["PORT"] or 5432
    proxy = Proxy(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, int(port)))
    yield proxy
    proxy.close()


@pytest.fixture
def worker(start, proxy):
    """A worker whose only way to the database leads through the proxy."""
    through = {"HOST": "127.0.0.1", "PORT": str(proxy.port)}
    return start(
        "--concurrency", "2", databases={"default": through}, environment=ENVIRONMENT
    ).ready()  # fmt: skip


@contextmanager
def through(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process ask the database through the proxy."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    own = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT=str(proxy.port))
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(own)


@BOTH
def test_an_enqueue_whose_answer_is_lost_raises_and_is_there_or_not(proxy, monkeypatch, after):
    with through(proxy, monkeypatch):
        connection.ensure_connection()
        cut = proxy.cut("COMMIT", after=after)
        with pytest.raises((OperationalError, InterfaceError)), transaction.atomic():
            Note.objects.create(text="business")
            mark.enqueue("a")
    assert cut.was_made.is_set()

    assert Note.objects.count() == Job.objects.count() == (1 if after else 0)


@BOTH
def test_a_claim_whose_answer_is_lost_is_given_back_unburnt(worker, proxy, ledger, after):
    cut = proxy.cut(CLAIM, after=after)
    result = mark.enqueue("a")

    assert cut.was_made.wait(10)
    (row,) = ended(result)

    assert (row.status, row.attempt, row.deaths) == (Job.SUCCESSFUL, 1, 0)
    assert ledger.count("ran", "a") == 1
    assert row.fence == (2 if after else 1)


@BOTH
def test_a_settle_whose_answer_is_lost_is_asked_again_and_no_body_runs_twice(
    worker, proxy, ledger, after
):
    cut = proxy.cut(SETTLE, after=after)
    result = mark.enqueue("a")

    assert cut.was_made.wait(10)
    (row,) = ended(result)
    ended(mark.enqueue("b"))

    assert (row.status, row.attempt, row.failures, row.history) == (Job.SUCCESSFUL, 1, 0, "[]")
    assert ledger.tags() == ["a", "b"]
    assert "attempt.superseded" not in worker.text
    until(lambda: worker.text.count("state=SUCCESSFUL") == 2, what="both told")


@BOTH
def test_a_start_whose_answer_is_lost_calls_the_body_once(worker, proxy, ledger, after):
    cut = proxy.cut(START, after=after)
    result = mark_at_most_once.enqueue("a")

    assert cut.was_made.wait(10)
    (row,) = ended(result)

    assert (row.status, row.attempt) == (Job.SUCCESSFUL, 1)
    assert ledger.count("ran", "a") == 1


@BOTH
def test_a_commit_of_effects_whose_answer_is_lost_is_decided_by_the_row(
    worker, proxy, ledger, gate, after
):
    result = hold_once.enqueue("a", str(gate))
    while not ledger.count("began", "a"):
        time.sleep(0.01)

    cut = proxy.cut("COMMIT", after=after, since=BEGUN)
    gate.touch()
    assert cut.was_made.wait(10)
    (row,) = ended(result)

    assert row.status == Job.SUCCESSFUL
    assert list(Note.objects.values_list("text", flat=True)) == ["a"]
    assert ledger.count("began", "a") == (1 if after else 2)
    assert row.attempt == (1 if after else 2)


@BOTH
def test_in_one_process_too_the_row_decides(proxy, ledger, monkeypatch, after):
    result = note_once.enqueue("a")

    with through(proxy, monkeypatch):
        connection.ensure_connection()
        cut = proxy.cut("COMMIT", after=after, since=BEGUN)
        run_jobs()
    assert cut.was_made.is_set()

    row = Job.objects.get(pk=result.id)
    assert (row.status, Note.objects.count()) == (Job.SUCCESSFUL, 1)
    assert row.attempt == (1 if after else 2)
