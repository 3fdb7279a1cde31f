"""Cancels that meet bodies: each job ends once, as whoever cancelled was told."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, connections

from django_once import exactly_once, task
from django_once.models import Job
from django_once.models.job.expire import sweep
from django_once.models.worker import expire
from django_once.testing import run_jobs
from tests.app.models import Note
from tests.jobs import in_threads

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

JOBS = 24
CALLED: list[str] = []


@task
def call(name: str) -> None:
    CALLED.append(name)


@task(delivery="at_most_once")
def call_at_most_once(name: str) -> None:
    CALLED.append(name)


@task
@exactly_once
def note_once(name: str) -> None:
    CALLED.append(name)
    Note.objects.create(text=name)


@task
async def call_later(name: str) -> None:
    CALLED.append(name)


@pytest.mark.parametrize("declared", [call, call_at_most_once, note_once, call_later])
def test_of_many_cancels_and_bodies_each_job_keeps_one_truthful_end(declared):
    CALLED.clear()
    results = [declared.enqueue(f"{n}") for n in range(JOBS)]
    said: dict[str, bool] = {}

    def cancel() -> None:
        for result in reversed(results):
            said[result.id] = result.cancel()

    in_threads(run_jobs, run_jobs, cancel)
    run_jobs()

    rows = {str(row.id): row for row in Job.objects.all()}
    for n, result in enumerate(results):
        row = rows[result.id]
        calls = CALLED.count(f"{n}")
        # Who was told that nothing was to be cancelled finds a job that has ended well.
        assert said[result.id] or row.status == "SUCCESSFUL"
        assert (row.status, row.reason) in (("SUCCESSFUL", ""), ("FAILED", "cancelled"))
        assert calls == (1 if row.status == "SUCCESSFUL" else 0)
    if declared is note_once:
        written = sorted(Note.objects.values_list("text", flat=True))
        assert written == sorted(CALLED)


MET: dict[str, threading.Event] = {}


@task
@exactly_once
def write_and_wait() -> None:
    Note.objects.create(text="a")
    MET["began"].set()
    assert MET["asked"].wait(20)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="The body holds the one writer.")
@pytest.mark.parametrize("verb", ["cancel", "sweep", "look"])
def test_nobody_waits_for_an_exactly_once_body_or_changes_its_end(verb):
    MET.update(began=threading.Event(), asked=threading.Event())
    result = write_and_wait.enqueue()
    answers: list[Any] = []

    def meddle() -> None:
        assert MET["began"].wait(20)
        try:
            if verb == "cancel":
                answers.append(result.cancel())
            elif verb == "sweep":
                answers.extend([expire("default"), sweep("default")])
            else:
                answers.append(Job.objects.filter(status="SUCCESSFUL").count())
        finally:
            MET["asked"].set()
            connections.close_all()

    in_threads(run_jobs, meddle)

    row = Job.objects.get(pk=result.id)
    assert (row.status, row.attempt, Note.objects.count()) == ("SUCCESSFUL", 1, 1)
    assert not any(answers)
