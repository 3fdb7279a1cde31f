"""Ending attempts: each guard in both directions, mixed batches, values that databases dislike."""

from __future__ import annotations

import json
from contextlib import suppress
from uuid import uuid4

import pytest
from django.db import connection, transaction

from django_once import identity, sql
from django_once.models import Job
from django_once.models.job.cancel import cancel
from django_once.models.job.settle import mark_started, settle, start, what_became
from django_once.sql.values import Outcome
from django_once.testing import moved_clock
from tests.jobs import (
    DATABASE,
    a_worker,
    another_try,
    claim,
    claim_one,
    ending,
    failure,
    given_back,
    history,
    row,
    store,
    store_many,
    success,
)

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def with_claim(outcome, nonce):
    return Outcome(**{**{n: getattr(outcome, n) for n in Outcome._fields}, "claim": nonce})


def test_a_success_keeps_its_value_and_says_when_it_began():
    job = store()
    attempt = claim_one(a_worker("ann"))

    superseded = settle(DATABASE, [success(attempt, '{"a":1}')])

    found = row(job)
    assert superseded == set()
    assert (found.status, found.return_value, found.worker_name) == ("SUCCESSFUL", '{"a":1}', "ann")
    assert found.enqueued_at <= found.started_at == found.last_attempted_at <= found.finished_at
    assert found.position is None


def test_a_failure_for_good_says_why_in_its_history():
    job = store()
    attempt = claim_one(a_worker("ann"))

    settle(DATABASE, [failure(attempt)])

    found = row(job)
    (entry,) = history(job)
    assert (found.status, found.reason, found.failures, found.attempt) == ("FAILED", "raised", 1, 1)
    assert (entry["kind"], entry["attempt"], entry["worker"]) == ("raised", 1, "ann")
    assert entry["error"] == "builtins.ValueError"


def test_a_retry_waits_and_gets_its_place_when_it_is_due():
    job = store(max_attempts=3)
    attempt = claim_one()

    settle(DATABASE, [another_try(attempt, delay=60.0)])

    found = row(job)
    assert (found.status, found.position, found.failures, found.worker) == ("READY", None, 1, None)
    assert 59 < (found.due_at - found.enqueued_at).total_seconds() < 65
    assert found.run_after is None


def test_a_retry_at_once_goes_to_the_end_of_its_lane():
    job, other = store(), store()
    attempt = claim_one()

    settle(DATABASE, [another_try(attempt)])

    assert [again.id for again in claim(a_worker())] == [other, job]


def test_what_is_given_back_does_not_count_as_an_attempt():
    job = store()
    attempt = claim_one()

    settle(DATABASE, [given_back(attempt, reason="released")])

    found = row(job)
    assert (found.status, found.attempt, found.fence, found.reason) == ("READY", 0, 1, "released")
    assert claim_one().fence == 2


def test_what_waits_for_something_leaves_the_ready_index():
    job = store()

    settle(DATABASE, [given_back(claim_one(), blocked_by="unknown_task")])

    assert (row(job).blocked_by, row(job).position) == ("unknown_task", None)
    assert claim(a_worker()) == []


@pytest.mark.parametrize("outcome", [success, failure, another_try, given_back])
def test_nobody_ends_an_attempt_under_another_nonce(outcome):
    job = store()
    attempt = claim_one()

    assert settle(DATABASE, [with_claim(outcome(attempt), uuid4())]) == {job}
    assert row(job).status == Job.RUNNING
    assert settle(DATABASE, [outcome(attempt)]) == set()


@pytest.mark.parametrize("first", [success, failure, another_try, given_back])
@pytest.mark.parametrize("second", [success, failure, another_try, given_back])
def test_an_attempt_ends_once(first, second):
    job = store()
    attempt = claim_one()
    settle(DATABASE, [first(attempt)])
    before = Job.objects.values().get(pk=job)

    assert settle(DATABASE, [second(attempt)]) == {job}
    assert Job.objects.values().get(pk=job) == before


def test_a_late_worker_cannot_overwrite_its_successor():
    job = store()
    slow = claim_one()
    settle(DATABASE, [given_back(slow)])
    quick = claim_one()

    assert settle(DATABASE, [success(slow, '"stale"')]) == {job}
    assert settle(DATABASE, [success(quick, '"fresh"')]) == set()
    assert row(job).return_value == '"fresh"'


def test_a_batch_may_mix_every_kind_of_outcome():
    jobs = store_many(6)
    attempts = claim(a_worker())
    one, two, three, four, five, six = attempts
    settle(DATABASE, [success(six)])

    superseded = settle(
        DATABASE,
        [
            success(one, '"done"'),
            failure(two),
            another_try(three, delay=5.0),
            given_back(four),
            given_back(five, blocked_by="limit"),
            success(six, '"late"'),
        ],
    )

    assert superseded == {jobs[5]}
    assert [row(job).status for job in jobs] == [
        "SUCCESSFUL", "FAILED", "READY", "READY", "READY", "SUCCESSFUL",
    ]  # fmt: skip
    assert [row(job).position is not None for job in jobs] == [False] * 3 + [True] + [False] * 2
    assert row(jobs[5]).return_value == "null"


def test_an_empty_batch_is_no_statement():
    with connection.execute_wrapper(refuse_all):
        assert settle(DATABASE, []) == set()


def refuse_all(*_):
    raise AssertionError("A statement was sent.")


def test_a_job_that_is_no_more_is_superseded():
    job = store()
    attempt = claim_one()
    Job.objects.all().delete()

    assert settle(DATABASE, [success(attempt)]) == {job}


def test_each_failure_adds_one_entry_to_the_history():
    job = store(max_attempts=9)
    for number in range(1, 4):
        attempt = claim_one()
        assert attempt.history_length == len(row(job).history)
        settle(DATABASE, [another_try(attempt)])
        assert [entry["attempt"] for entry in history(job)] == list(range(1, number + 1))


def test_a_history_is_dated_by_the_databases_moved_clock():
    job = store(max_attempts=2)
    attempt = claim_one()

    with moved_clock("2d"):
        settle(DATABASE, [another_try(attempt)])

    at = history(job)[0]["at"]
    assert at.endswith("Z")
    assert (row(job).enqueued_at.date() - row(job).enqueued_at.date().resolution).isoformat() < at


HOSTILE = {
    "quotes": 'it\'s "quoted" `ticked` $$dollars$$ $tag$ --comment /* */ ; DROP TABLE once_job',
    "percent signs": "100% %s %(a)s %%s %d",
    "backslashes": "\\ \\\\ \\n \\u0041 \\' \\\" C:\\x",
    "emoji": "\N{GRINNING FACE} \N{FAMILY} e\u0301 \u202e right to left",
    "control characters": "\x01\x1f\x7f\r\n\t\u2028\u2029",
    "braces": '{"at":"x"}]} , [{ null',
    "a megabyte": "x" * 1_000_000,
    "a megabyte of quotes": "\"\\'" * 300_000,
    "private and last characters": "\ue000\uffff\U0010ffff",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_goes_in_comes_out(text):
    args = json.dumps([text, {text[:50]: [text[:50]]}], ensure_ascii=False)
    nested = json.dumps(args, ensure_ascii=False)
    job = store(args=args, kwargs=json.dumps({"a": text}), max_attempts=2)
    attempt = claim_one()
    entry = entry_of(text, attempt)
    settle(DATABASE, [another_try(attempt, entry=entry)])

    again = claim_one()
    settle(DATABASE, [success(again, nested)])

    found = row(job)
    assert json.loads(attempt.args) == [text, {text[:50]: [text[:50]]}]
    assert json.loads(attempt.kwargs) == {"a": text}
    assert json.loads(json.loads(found.return_value)) == json.loads(args)
    assert history(job)[0]["traceback"] == text


def entry_of(text, attempt):
    member = {
        "kind": "raised", "attempt": attempt.attempt, "worker": attempt.worker_name, "error": text,
        "traceback": text,
    }  # fmt: skip
    return json.dumps(member, ensure_ascii=False)[1:]


def test_a_large_batch_of_large_values_goes_in_pieces():
    jobs = store_many(12)
    attempts = claim(a_worker())
    statements = []

    def count(execute, sql, *rest):
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        settle(DATABASE, [success(one, json.dumps("\\" * 490_000)) for one in attempts])

    assert len([sql for sql in statements if "once_job" in sql]) >= 6
    assert {row(job).status for job in jobs} == {"SUCCESSFUL"}


def test_a_value_that_the_database_refuses_ends_its_own_job_and_no_other():
    jobs = store_many(5)
    attempts = claim(a_worker())
    outcomes = [success(one) for one in attempts]
    outcomes[2] = ending(attempts[2], status="a status of far more than ten characters", ran=0.0)

    if connection.vendor == "sqlite":
        pytest.skip("SQLite keeps what others refuse.")
    assert settle(DATABASE, outcomes) == set()

    assert [row(job).status for job in jobs] == ["SUCCESSFUL"] * 2 + ["FAILED"] + ["SUCCESSFUL"] * 2
    assert history(jobs[2])[0]["error"] == "django_once.errors.NotStorable"


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite keeps what others refuse.")
def test_a_refused_value_among_others_that_did_not_succeed_is_cut_out_of_their_batch():
    jobs = store_many(5)
    attempts = claim(a_worker())
    outcomes = [another_try(one) for one in attempts]
    outcomes[2] = ending(attempts[2], status="a status of far more than ten characters", ran=0.0)

    assert settle(DATABASE, outcomes) == set()

    assert [row(job).status for job in jobs] == ["READY"] * 2 + ["FAILED"] + ["READY"] * 2


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="Others keep a NUL in a text.")
def test_a_refused_value_among_successes_is_cut_out_of_their_batch():
    jobs = store_many(5)
    attempts = claim(a_worker())
    outcomes = [success(one, "\0" if one is attempts[2] else "1") for one in attempts]

    assert settle(DATABASE, outcomes) == set()

    assert [row(job).status for job in jobs] == ["SUCCESSFUL"] * 2 + ["FAILED"] + ["SUCCESSFUL"] * 2


# A start on record.


def test_an_attempt_is_started_once():
    job = store(delivery="at_most_once")
    attempt = claim_one()

    assert [start(DATABASE, attempt) for _ in range(2)] == [True, False]
    assert row(job).started_at == row(job).last_attempted_at


def test_nothing_starts_under_another_nonce_or_after_its_end():
    store(delivery="at_most_once")
    attempt = claim_one()
    statements = sql.on(DATABASE)

    assert not statements.start(attempt.id, uuid4())
    settle(DATABASE, [given_back(attempt)])
    assert not statements.start(attempt.id, attempt.claim)


def test_the_next_attempt_starts_anew_and_the_first_start_is_kept():
    job = store(delivery="at_most_once", max_attempts=2)
    first = claim_one()
    start(DATABASE, first)
    began = row(job).started_at
    settle(DATABASE, [another_try(first)])

    assert start(DATABASE, claim_one())
    assert row(job).started_at == began


def test_long_bodies_are_marked_as_started_while_they_are_held():
    held, ended = store_many(2)
    one, other = claim(a_worker())
    settle(DATABASE, [given_back(other)])

    assert mark_started(DATABASE, [(held, one.claim, 2.5), (ended, other.claim, 2.5)]) == 1
    ago = row(held).enqueued_at - row(held).started_at
    assert 2 < ago.total_seconds() < 3
    assert row(ended).started_at is None


def test_a_settle_keeps_the_start_that_was_marked():
    job = store()
    attempt = claim_one()
    mark_started(DATABASE, [(job, attempt.claim, 2.5)])
    began = row(job).started_at

    settle(DATABASE, [success(attempt)])

    assert (row(job).started_at, row(job).last_attempted_at) == (began, began)


# A cancel that was asked for meanwhile.


def test_a_completion_wins_over_a_cancel():
    job = store()
    attempt = claim_one()
    cancel(DATABASE, [job])

    assert settle(DATABASE, [success(attempt)]) == set()
    assert row(job).status == Job.SUCCESSFUL


@pytest.mark.parametrize("outcome", [another_try, given_back])
def test_a_cancelled_job_does_not_come_back(outcome):
    job = store(max_attempts=5)
    attempt = claim_one()
    cancel(DATABASE, [job])

    settle(DATABASE, [outcome(attempt, entry=entry_of("x", attempt))])

    assert (row(job).status, row(job).reason) == ("FAILED", "cancelled")


# exactly_once: outcome first, verified last.


def test_outcome_first_and_verified_last_is_a_success():
    job = store()
    attempt = claim_one()
    statements = sql.on(DATABASE)

    with transaction.atomic():
        mark = statements.begin_success(job, attempt.claim, 60.0)
        assert statements.verify_success(job, attempt.claim, mark, '"v"', 1.5)

    found = row(job)
    assert (found.status, found.return_value, found.reason) == ("SUCCESSFUL", '"v"', "")
    assert 1 < (found.finished_at - found.started_at).total_seconds() < 2
    assert settle(DATABASE, [failure(attempt)]) == {job}


def test_a_success_is_begun_by_its_holder_only():
    job = store()
    attempt = claim_one()
    statements = sql.on(DATABASE)

    assert not statements.begin_success(job, uuid4(), 60.0)
    settle(DATABASE, [given_back(attempt)])
    assert not statements.begin_success(job, attempt.claim, 60.0)


def test_a_success_is_verified_once_and_only_after_it_was_begun():
    job = store()
    attempt = claim_one()
    statements = sql.on(DATABASE)

    with transaction.atomic():
        assert not statements.verify_success(job, attempt.claim, "once_outcome", "1", 0.0)
    with suppress(ZeroDivisionError), transaction.atomic():
        mark = statements.begin_success(job, attempt.claim, 60.0)
        assert not statements.verify_success(job, uuid4(), mark, "1", 0.0)
        raise ZeroDivisionError
    with transaction.atomic():
        mark = statements.begin_success(job, attempt.claim, 60.0)
        assert statements.verify_success(job, attempt.claim, mark, "1", 0.0)
        assert not statements.verify_success(job, attempt.claim, mark, "2", 0.0)
    assert row(job).return_value == "1"


def test_a_success_whose_beginning_was_rolled_back_is_not_verified():
    job = store()
    attempt = claim_one()
    statements = sql.on(DATABASE)

    with transaction.atomic():
        with suppress(ZeroDivisionError), transaction.atomic():
            mark = statements.begin_success(job, attempt.claim, 60.0)
            raise ZeroDivisionError
        assert not statements.verify_success(job, attempt.claim, mark, "1", 0.0)
    assert row(job).status == Job.RUNNING


def test_a_job_given_back_after_a_cancel_says_why_it_ended():
    job = store()
    attempt = claim_one()
    assert cancel(DATABASE, [job]).requested == 1

    settle(DATABASE, [given_back(attempt)])

    found = row(job)
    assert (found.status, found.reason) == ("FAILED", "cancelled")
    assert [entry["kind"] for entry in history(job)] == ["cancelled"]


def test_a_job_that_fails_after_a_cancel_was_cancelled():
    job = store()
    attempt = claim_one()
    assert cancel(DATABASE, [job]).requested == 1

    settle(DATABASE, [failure(attempt)])

    assert (row(job).status, row(job).reason) == ("FAILED", "cancelled")
    assert [entry["kind"] for entry in history(job)] == ["raised"]


def test_an_attempt_that_ends_as_cancelled_says_when():
    job = store()
    attempt = claim_one()

    settle(DATABASE, [failure(attempt, reason="cancelled", failed=False)])

    assert row(job).cancel_requested_at is not None


# An answer that was lost.


def test_what_became_of_an_attempt_is_told_by_its_nonce():
    jobs = store_many(5)
    attempts = claim(a_worker())
    ended, retried, held, taken, gone = attempts
    settle(DATABASE, [success(ended), another_try(retried), given_back(taken)])
    again = {one.id: one for one in claim(a_worker("bob"))}
    settle(DATABASE, [given_back(again[jobs[1]])])
    Job.objects.filter(pk=gone.id).delete()

    fates = what_became(DATABASE, [(one.id, one.claim) for one in attempts])

    assert [fates[job] for job in jobs] == [
        "settled", "superseded", "held", "superseded", "superseded",
    ]  # fmt: skip
    assert what_became(DATABASE, [(held.id, identity.nonce())]) == {held.id: "superseded"}


def test_an_outcome_that_came_back_as_ready_was_settled_by_its_attempt():
    store()
    attempt = claim_one()
    settle(DATABASE, [another_try(attempt, delay=9.0)])

    assert what_became(DATABASE, [(attempt.id, attempt.claim)]) == {attempt.id: "settled"}
