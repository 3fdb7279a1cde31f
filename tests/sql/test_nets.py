"""The nets under what should have happened: one statement says which caught something."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once.clock import Now
from django_once.models import Job
from django_once.models.nets import caught
from django_once.models.pause import Pause
from django_once.models.tally import Tally
from django_once.models.worker import Worker
from tests.jobs import DATABASE, a_worker, store

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def names() -> set[str]:
    found = caught(DATABASE, "default")
    return {name for name, is_full in zip(found._fields, found, strict=True) if is_full}


def test_nothing_is_in_the_nets_of_ordinary_work():
    store()
    a_worker()
    Pause.objects.create(backend="default", kind="queue", name="mail")

    assert names() == set()


def test_each_net_is_told_apart():
    store(gate="limit:a", rule='{"concurrency":1}')
    assert names() == {"at_gates"}
    Job.objects.all().delete()

    store()
    Job.objects.update(blocked_by="lock:a", position=None)
    assert names() == {"by_locks"}
    Job.objects.update(blocked_by="paused")
    assert names() == set()

    Pause.objects.create(
        backend="default", kind="queue", name="mail", until=Now() - timedelta(seconds=1)
    )
    assert names() == {"by_pauses"}
    Pause.objects.all().delete()

    Tally.objects.create(backend="default", task="a.b")
    assert names() == {"in_tallies"}
    Tally.objects.all().delete()

    worker = a_worker()
    Worker.objects.filter(pk=worker.id).update(drain_requested_at=Now())
    assert names() == {"to_drain"}
    Worker.objects.filter(pk=worker.id).update(stopped_at=Now())
    assert names() == set()
