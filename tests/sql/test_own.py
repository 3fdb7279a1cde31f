"""The engine's own sessions on PostgreSQL: what they begin with, and when there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from django_once import sql
from django_once.sql import own
from tests.jobs import DATABASE

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def on_postgresql(transactional_db, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL has sessions of the engine's own.")
    monkeypatch.setattr(own, "_refusing", {})


def in_a_thread_of_the_engine(work: Callable[[], Any]) -> Any:
    """Do this in a thread that has sessions of its own, and close them."""
    found: list[Any] = []

    def run() -> None:
        own.enter()
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)
        finally:
            own.drop(DATABASE)
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return found[0]


def test_a_session_plans_each_statement_once_and_without_statistics():
    def look() -> list[str]:
        session = own.session_of(DATABASE)
        assert session is own.session_of(DATABASE)
        names = ("plan_cache_mode", "enable_seqscan", "transaction_isolation")
        return [session.rows(f"SHOW {name}", [])[0][0] for name in names]

    assert in_a_thread_of_the_engine(look) == ["force_generic_plan", "off", "read committed"]


def test_a_thread_that_runs_other_peoples_code_has_none():
    assert own.session_of(DATABASE) is None


def test_a_session_that_was_cut_is_followed_by_another():
    def look() -> tuple[int, int]:
        first = own.session_of(DATABASE)
        pid = first.rows("SELECT pg_backend_pid()", [])[0][0]
        sql.on(DATABASE).rows("SELECT pg_terminate_backend(%s, 5000)", [pid])
        with pytest.raises(OperationalError):
            first.rows("SELECT 1", [])
        own.drop(DATABASE)
        return pid, own.session_of(DATABASE).rows("SELECT pg_backend_pid()", [])[0][0]

    first, second = in_a_thread_of_the_engine(look)

    assert first != second


def test_who_refuses_is_asked_again_later(monkeypatch):
    answers = [None]
    monkeypatch.setattr(own, "_opened", lambda alias: answers.append(alias))

    def look() -> int:
        for _ in range(5):
            assert own.session_of(DATABASE) is None
        asked_at_once = len(answers)
        monkeypatch.setattr(own, "_refusing", {DATABASE: 0.0})
        own.session_of(DATABASE)
        return len(answers) - asked_at_once

    assert in_a_thread_of_the_engine(look) == 1
    assert len(answers) == 3
