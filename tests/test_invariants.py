"""The books can be wrong: each invariant finds the row that was made to break it, and no other."""

from __future__ import annotations

import json
import uuid

import pytest

from django_once.models import Job
from tests.invariants import HISTORY, INVARIANTS, violations
from tests.jobs import a_worker, another_try, claim, failure, given_back, settled, store, success

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True),
    pytest.mark.books_may_be_wrong,
]

AT = "2026-01-01 00:00:00"
LATER = "2026-01-02 00:00:00"


def ready():
    store()


def running():
    store()
    claim(a_worker())


def successful():
    store()
    settled(success)


def failed():
    store()
    settled(failure)


def tried_again():
    store(max_attempts=2)
    settled(another_try)


BREAKS = [
    ("There are four statuses.", ready, {"status": "PENDING"}),
    ("A running job has a holder", running, {"claim": None}),
    ("A running job has a holder", running, {"worker": None}),
    ("A running job has a holder", running, {"worker_name": ""}),
    ("A job that waits has no holder", ready, {"worker": uuid.uuid4()}),
    ("A job that waits has no holder", ready, {"worker_name": "ann"}),
    ("A successful job says who", successful, {"worker_name": ""}),
    ("A job that was claimed has a fence", ready, {"claim": uuid.uuid4()}),
    ("Each attempt has a fence", ready, {"attempt": 1}),
    ("An attempt ends in one failure", successful, {"failures": 2}),
    ("An attempt ends in one failure", failed, {"deaths": 1}),
    ("Nothing is counted below zero", ready, {"attempt": -1}),
    ("Nothing is counted below zero", ready, {"failures": -1}),
    ("A running job is in an attempt", running, {"attempt": 0}),
    ("A successful job had an attempt", successful, {"attempt": 0}),
    ("Only what is ready and unblocked gets a place", successful, {"position": 5}),
    ("Only what is ready and unblocked gets a place", ready, {"blocked_by": "limit"}),
    ("Only what waits is blocked", running, {"blocked_by": "limit", "position": None}),
    ("What has ended says when", successful, {"finished_at": None}),
    ("What has not ended has no end", ready, {"finished_at": AT}),
    ("What is successful says when it began", successful, {"last_attempted_at": None}),
    ("What is successful says when it began", successful, {"started_at": None}),
    ("The first start is not after the last", running,
     {"started_at": LATER, "last_attempted_at": AT}),
    ("What is successful has a value", successful, {"return_value": None}),
    ("What is successful has a value", ready, {"return_value": "1"}),
    ("What failed says why", failed, {"reason": ""}),
    ("What failed says why", failed, {"history": "[]", "failures": 0}),
    ("A success needs no reason", successful, {"reason": "raised"}),
    ("A uniqueness without a window ends with its job", failed, {"unique_hash": "x"}),
    ("A cancel that was asked for is not forgotten", ready, {"cancel_requested_at": AT}),
    ("What was cancelled says when", failed, {"reason": "cancelled"}),
    (HISTORY, failed, {"history": '[{"at":"x"}'}),
    (HISTORY, failed, {"history": '{"at":"x"}'}),
    (HISTORY, failed, {"history": '[{"at":"x"}]'}),
    (HISTORY, tried_again, {"history": "[]"}),
    (HISTORY, failed, {"fence": 0, "claim": None, "attempt": 0, "failures": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "made", "change"), BREAKS)
def test_a_row_that_breaks_an_invariant_is_found(sentence, made, change):
    made()
    assert violations() == []

    Job.objects.update(**change)

    assert any(line.startswith(sentence) for line in violations())


def test_each_invariant_is_broken_by_one_of_these_rows():
    broken = [sentence for sentence, _, _ in BREAKS]

    assert [
        one.sentence
        for one in INVARIANTS
        if not any(one.sentence.startswith(sentence) for sentence in broken)
    ] == []


@pytest.mark.parametrize("made", [ready, running, successful, failed, tried_again])
def test_what_the_verbs_leave_behind_is_in_order(made):
    made()

    assert violations() == []


def test_entries_out_of_order_are_found():
    store(max_attempts=3)
    settled(another_try)
    settled(another_try)
    assert violations() == []
    entries = json.loads(Job.objects.get().history)
    entries[0]["at"] = "9999"

    Job.objects.update(history=json.dumps(entries))

    assert len(violations()) == 1


def test_an_empty_table_is_in_order():
    assert violations() == []
    store()
    settled(given_back)
    assert violations() == []
