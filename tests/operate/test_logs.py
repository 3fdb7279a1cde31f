"""Logs that know their job, as text and as JSON, and never its arguments."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from django_once import surroundings, task
from django_once.contrib.logs import FIELDS, JobFilter, JSONFormatter
from django_once.testing import run_jobs

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]
log = logging.getLogger("tests.of.a.user")


@task
def talk(word: str) -> None:
    log.warning("working")


@task(delivery="exactly_once")
def talk_once(word: str) -> None:
    log.warning("working")


@task
async def talk_later(word: str) -> None:
    log.warning("working")


@task
def fail_aloud(word: str) -> None:
    raise ValueError("out of order")


@pytest.fixture
def lines() -> Iterator[Any]:
    """Write all logs as JSON, and return what was written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobFilter())
    handler.setFormatter(JSONFormatter())
    loggers = [logging.getLogger(name) for name in ("", "django.tasks", "django_tasks")]
    levels = [one.level for one in loggers]
    logging.getLogger().addHandler(handler)
    for one in loggers:
        one.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logging.getLogger().removeHandler(handler)
    for one, level in zip(loggers, levels, strict=True):
        one.setLevel(level)
    surroundings.are_asked = False


@pytest.mark.parametrize("speaks", [talk, talk_once, talk_later])
def test_a_record_made_in_a_body_knows_its_job(lines, speaks):
    job = speaks.enqueue("hush")
    run_jobs()
    log.warning("after")

    (inside,) = [one for one in lines() if one["message"] == "working"]
    (after,) = [one for one in lines() if one["message"] == "after"]

    assert {name: inside[name] for name in FIELDS} == {
        "job": job.id, "task": speaks.module_path, "queue": "default", "attempt": 1, "fence": 1,
    }  # fmt: skip
    assert "job" not in after
    assert "hush" not in json.dumps(lines())


def test_lines_of_the_engine_have_their_fields(lines):
    job = fail_aloud.enqueue("hush")
    run_jobs()

    ended = [one for one in lines() if one["level"] == "ERROR" and one.get("job") == job.id]

    assert len(ended) == 1
    assert (ended[0]["attempt"], ended[0]["fence"], ended[0]["queue"]) == (1, 1, "default")
    assert (ended[0]["state"], ended[0]["task"]) == ("FAILED", fail_aloud.module_path)
    assert "out of order" in ended[0]["exception"]
    assert "hush" not in json.dumps(lines())


def test_our_lines_name_their_event(lines):
    from django_once import events

    events.lock_lost("export:7", 3, "its lease was over")

    (line,) = [one for one in lines() if one["logger"] == "django_once"]
    assert (line["event"], line["name"], line["fence"]) == ("lock.lost", "export:7", 3)
    assert line["time"].endswith("+00:00")


def test_nothing_is_remembered_where_nobody_asks():
    assert surroundings.enter("an attempt") is None
    assert surroundings.attempt() is None
