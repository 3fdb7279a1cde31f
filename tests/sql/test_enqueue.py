"""Putting jobs there: every column as asked, whatever zone, clock and transaction surround it."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, connections, transaction
from django.test import override_settings

from django_once import identity
from django_once.models import Job
from django_once.models.job.enqueue import enqueue, enqueue_many
from django_once.models.job.ready import promote, seconds_to_next_due
from django_once.testing import moved_clock
from tests.jobs import DATABASE, a_worker, claim, new_job, row, store

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_a_job_is_stored_as_it_was_asked_for():
    job = new_job(
        args='[1,"a"]', kwargs='{"b":null}', queue="mail", priority=-7, max_attempts=4,
        max_deaths=1, timeout=2.5, delivery="exactly_once", meta='{"t":1}',
        expires=timedelta(minutes=1),
    )  # fmt: skip

    stored = enqueue(DATABASE, job)

    found = row(job.id)
    for name in ("backend", "task", "args", "kwargs", "queue", "priority", "max_attempts",
                 "max_deaths", "timeout", "delivery", "meta"):  # fmt: skip
        assert getattr(found, name) == getattr(job, name), name
    assert stored.is_ready
    assert found.enqueued_at == found.due_at == stored.enqueued_at
    assert (found.expires_at - found.enqueued_at).total_seconds() == pytest.approx(60, abs=0.1)
    assert (found.status, found.fence, found.attempt, found.claim) == ("READY", 0, 0, None)


def test_a_job_for_later_has_no_place_and_keeps_the_wish():
    job = new_job(run_after=timedelta(minutes=5))

    assert not enqueue(DATABASE, job).is_ready

    found = row(job.id)
    assert found.position is None
    assert found.run_after == found.due_at
    assert (found.due_at - found.enqueued_at).total_seconds() == pytest.approx(300, abs=0.1)
    assert claim(a_worker()) == []
    assert seconds_to_next_due(DATABASE) == pytest.approx(300, abs=5)


def put(job, many):
    """Enqueue a job alone, or as a batch of one."""
    if not many:
        return enqueue(DATABASE, job)
    return enqueue_many(DATABASE, job, [(job.id, "[]", "{}")])


@pytest.mark.parametrize("many", [False, True])
def test_a_moment_that_has_passed_is_ready_at_once(many):
    job = new_job(run_after=datetime(2020, 1, 1, tzinfo=UTC))

    stored = put(job, many)

    assert stored.is_ready
    assert row(job.id).run_after == datetime(2020, 1, 1, tzinfo=UTC)
    assert [one.id for one in claim(a_worker())] == [job.id]


def test_expiry_counts_from_when_the_job_may_run():
    delayed = store(run_after=timedelta(hours=1), expires=timedelta(minutes=1))
    moment = datetime.fromtimestamp(identity.position() / 1_000_000, UTC) + timedelta(hours=2)
    at_moment = store(run_after=moment, expires=timedelta(minutes=1))

    one, two = row(delayed), row(at_moment)
    assert (one.expires_at - one.due_at).total_seconds() == pytest.approx(60, abs=0.1)
    assert (two.expires_at - two.due_at).total_seconds() == pytest.approx(60, abs=0.1)


def test_many_jobs_share_everything_but_id_and_arguments():
    members = [(identity.job_id(), f"[{n}]", json.dumps({"n": n})) for n in range(250)]

    stored = enqueue_many(DATABASE, new_job(queue="mail", expires=timedelta(hours=1)), members)

    assert stored.is_ready
    assert Job.objects.filter(queue="mail", enqueued_at=stored.enqueued_at).count() == 250
    attempts = claim(a_worker(), 300)
    assert [(one.id, one.args, one.kwargs) for one in attempts] == members


@pytest.mark.parametrize("many", [False, True])
def test_a_job_exists_if_and_only_if_its_transaction_commits(many):
    kept, undone = new_job(), new_job()

    with transaction.atomic():
        put(kept, many)
    with suppress(ZeroDivisionError), transaction.atomic():
        put(undone, many)
        raise ZeroDivisionError

    assert list(Job.objects.values_list("pk", flat=True)) == [kept.id]


def test_a_row_that_sql_inserts_gets_every_default():
    id = identity.job_id()
    value = id if connection.features.has_native_uuid_field else id.hex
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO once_job (id, task) VALUES (%s, 'by.hand')", [value])

    found = row(id)
    assert (found.status, found.queue, found.args, found.history) == (
        "READY", "default", "[]", "[]",
    )  # fmt: skip
    # Nobody gave it a place, so it counts as waiting for its time, which has come.
    assert promote(DATABASE) == 1
    assert [one.id for one in claim(a_worker())] == [id]


ZONES = ["UTC", "Asia/Kathmandu", "America/St_Johns"]


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("zone", ZONES)
def test_moments_are_the_same_in_every_zone(use_tz, zone):
    before = row(store()).enqueued_at
    with override_settings(USE_TZ=use_tz, TIME_ZONE=zone):
        connections[DATABASE].close()
        try:
            job = new_job(run_after=timedelta(minutes=1), expires=timedelta(minutes=2))
            stored = enqueue(DATABASE, job)
            found = row(job.id)
            waits = seconds_to_next_due(DATABASE)
        finally:
            connections[DATABASE].close()

    assert stored.enqueued_at == found.enqueued_at
    assert found.enqueued_at.tzinfo == UTC
    assert 0 <= (found.enqueued_at - before).total_seconds() < 30
    assert waits == pytest.approx(60, abs=5)
    assert row(job.id).due_at == found.due_at


@pytest.mark.parametrize("zone", ZONES)
def test_a_users_moment_is_kept_whatever_the_connections_zone_is(zone):
    moment = datetime(2031, 6, 1, 12, 30, 15, 250_000, tzinfo=UTC)
    kept = connections[DATABASE].settings_dict.get("TIME_ZONE")
    if connection.vendor == "postgresql":
        connections[DATABASE].settings_dict["TIME_ZONE"] = zone
    with override_settings(TIME_ZONE=zone):
        reconnect()
        try:
            job = store(run_after=moment)
            naive = store(run_after=moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None))
            assert (row(job).due_at, row(naive).due_at) == (moment, moment)
        finally:
            connections[DATABASE].settings_dict["TIME_ZONE"] = kept
            reconnect()

    assert row(job).run_after == moment


def reconnect():
    one = connections[DATABASE]
    one.close()
    for cached in ("timezone", "timezone_name"):
        one.__dict__.pop(cached, None)


@pytest.mark.parametrize("by", [timedelta(days=400), timedelta(seconds=0.25)])
def test_the_offset_of_tests_moves_every_moment(by):
    plain = store()
    with moved_clock(by):
        job = store(run_after=timedelta(minutes=1))

    moved = row(job).enqueued_at - row(plain).enqueued_at
    assert by <= moved < by + timedelta(seconds=20)
    assert (row(job).due_at - row(job).enqueued_at).total_seconds() == pytest.approx(60, abs=0.1)
