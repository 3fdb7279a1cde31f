"""Poison in a row through one worker: each body ends truthfully, and the next one is clean."""

from __future__ import annotations

import json

import pytest
from django.db import connection

from django_once.models import Job
from tests.app.models import Note
from tests.processes.workers import ended
from tests.survival.poison import (
    AWAITED,
    POISON,
    await_poison,
    look_around,
    swallow_poison,
    swallow_poison_once,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

# A body that ends, breaks or hides what it promised to write in has not succeeded.
BREAKING_ONCE = {
    "open transaction", "broken block", "closed line", "closed connections", "session below",
    "begin by hand", "hidden table", "session", "isolation", "open block",
}  # fmt: skip


def report(rows: dict[str, Job]) -> dict[str, tuple[str, str]]:
    return {name: (row.status, row.reason) for name, row in rows.items()}


def test_forty_poison_bodies_end_truthfully_and_the_next_job_is_clean(start, ledger):
    command = start("--concurrency", "1").ready()
    before, *_ = ended(look_around.enqueue("before"))
    (worker,) = command.workers

    results = {name: swallow_poison.enqueue(name) for name in POISON}
    results |= {name: await_poison.enqueue(name) for name in AWAITED}
    rows = dict(zip(results, ended(*results.values(), seconds=60), strict=True))
    after, *_ = ended(look_around.enqueue("after"))

    expected = {
        name: (status, "raised" if status == "FAILED" else "")
        for name, (_, status) in (POISON | AWAITED).items()
    }
    assert len(rows) >= 40
    assert report(rows) == expected
    assert {row.attempt for row in rows.values()} == {1}
    assert {ledger.count("began", name.replace(" ", "-")) for name in rows} == {1}
    assert command.workers == [worker]
    assert after.status == "SUCCESSFUL"
    assert json.loads(after.return_value) == json.loads(before.return_value)
    assert sorted(Note.objects.values_list("text", flat=True)) == ["after", "before"]
    assert command.stop() == 0


@pytest.mark.slow
def test_each_poison_is_followed_by_a_clean_body(start, ledger):
    start("--concurrency", "1").ready()
    before, *_ = ended(look_around.enqueue("before"))

    dirty = {}
    for name in POISON:
        ended(swallow_poison.enqueue(name))
        (row,) = ended(look_around.enqueue(name))
        if (row.status, row.return_value) != ("SUCCESSFUL", before.return_value):
            dirty[name] = (row.return_value, row.history[-500:])

    assert dirty == {}


@pytest.mark.slow
def test_poison_in_a_transaction_of_its_worker_ends_truthfully(start, ledger):
    command = start("--concurrency", "1").ready()
    before, *_ = ended(look_around.enqueue("before"))

    results = {name: swallow_poison_once.enqueue(name) for name in POISON}
    rows = dict(zip(results, ended(*results.values(), seconds=60), strict=True))
    after, *_ = ended(look_around.enqueue("after"))

    wrong = {
        name: (row.status, row.reason)
        for name, row in rows.items()
        if name not in BREAKING_ONCE and row.status != POISON[name][1]
    }
    assert wrong == {}
    assert json.loads(after.return_value) == json.loads(before.return_value)
    assert Note.objects.filter(text="never committed").count() == sum(
        row.status == "SUCCESSFUL" for name, row in rows.items()
        if name in ("open transaction", "open block")
    )  # fmt: skip
    assert connection.vendor
    assert command.stop() == 0
