"""Bodies that a worker awaits in its event loop, where Django lets nobody ask the database."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from django_once import compat, task
from django_once.models import Job
from django_once.models.job.settle import settle
from django_once.processes import runner
from tests.jobs import claim_one

pytestmark = pytest.mark.django_db(transaction=True)

backend = compat.task_backends["default"]
opened = []


@task(takes_context=True)
async def look_at_itself(context):
    return [context.task_result.id, context.task_result.attempts]


@task
async def connect():
    def connect():
        connections["default"].ensure_connection()
        opened.append(connections["default"])

    await sync_to_async(connect)()


@pytest.fixture
def started():
    """Return the states in which a receiver was told that attempts started."""
    heard = []

    def hear(task_result, **_):
        heard.append((task_result.id, str(task_result.status)))

    compat.task_started.connect(hear)
    yield heard
    compat.task_started.disconnect(hear)


def awaited():
    """Run the one job that is ready as a worker does that awaits it."""
    ended = asyncio.run(runner.arun(backend, claim_one()))
    assert settle("default", [ended.outcome]) == set()


def test_a_body_may_look_at_its_context():
    result = look_at_itself.enqueue()

    awaited()

    assert look_at_itself.get_result(result.id).return_value == [result.id, 1]


def test_receivers_see_the_result(started):
    result = connect.enqueue()

    awaited()

    assert started == [(result.id, "RUNNING")]
    assert connect.get_result(result.id).return_value is None


def test_what_a_body_connected_to_is_closed():
    connect.enqueue()

    awaited()

    assert opened.pop().connection is None


def test_a_job_that_was_deleted_meanwhile_takes_nothing_with_it():
    result = look_at_itself.enqueue()
    attempt = claim_one()
    Job.objects.filter(pk=result.id).delete()

    ended = asyncio.run(runner.arun(backend, attempt))

    assert settle("default", [ended.outcome]) == {attempt.id}
