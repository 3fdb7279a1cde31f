"""`once retry` and `once cancel`: which jobs, how many, and whether somebody agreed."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection

from django_once.models import Job
from django_once.models.job.settle import settle
from tests.jobs import a_worker, claim, claim_one, failure, row, store, store_many, success
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def failed(count: int = 1, **said: object) -> list[UUID]:
    """Leave so many jobs that failed."""
    jobs = store_many(count, **said)
    settle("default", [failure(one) for one in claim(a_worker(), count + 100)])
    return jobs


def statuses() -> list[str]:
    return list(Job.objects.order_by("pk").values_list("status", flat=True))


# once retry


def test_ended_jobs_run_again_and_are_counted():
    jobs = failed(2)

    answer = once("retry", *jobs, "--yes")

    assert (answer.code, answer.out) == (0, "Retried 2 jobs.\n")
    assert statuses() == ["READY", "READY"]


def test_only_what_failed_is_meant_unless_more_is_said():
    bad = failed(task="shop.charge")
    good = store(task="shop.charge")
    settle("default", [success(claim_one())])

    assert once("retry", "--task", "charge", "--yes").out == "Retried 1 job.\n"
    assert (row(bad[0]).status, row(good).status) == ("READY", "SUCCESSFUL")
    assert once("retry", "--state", "successful", "-y").out == "Retried 1 job.\n"


def test_a_question_is_asked_with_the_number_and_no_is_no():
    failed(3)

    for typed in ("n\n", "\n", "no\n", "nonsense\n"):
        answer = once("retry", "--state", "failed", answer=typed)
        assert (answer.code, answer.out) == (1, "Retry 3 jobs? [y/N] Nothing was changed.\n")
    assert statuses() == ["FAILED"] * 3
    answer = once("retry", "--state", "failed", answer="y\n")
    assert (answer.code, answer.out) == (0, "Retry 3 jobs? [y/N] Retried 3 jobs.\n")


def test_where_nobody_answers_nothing_is_changed():
    failed()

    answer = once("retry", "--state", "failed")

    assert answer.code == 2
    assert "Nobody answered, so nothing was changed: add --yes" in answer.err
    assert statuses() == ["FAILED"]


def test_where_a_program_reads_the_question_is_no_part_of_the_json():
    failed()

    assert once("retry", "--state", "failed", "--json", "--yes").json == {
        "retried": 1, "not_ended": 0,
    }  # fmt: skip
    failed(2)
    answer = once("retry", "--state", "failed", "--json", answer="y\n")
    assert answer.json == {"retried": 3, "not_ended": 0}
    assert answer.err == "Retry 3 jobs? [y/N] "
    answer = once("cancel", "--queue", "default", "--json", answer="n\n")
    assert (answer.code, answer.out) == (1, "")


def test_a_dry_run_shows_which_and_changes_nothing():
    jobs = failed(12)

    answer = once("retry", "--queue", "default", "--dry-run")

    assert answer.code == 0
    assert answer.lines[0] == "Would retry 12 jobs:"
    assert [UUID(line.strip()) for line in answer.lines[1:11]] == jobs[:10]
    assert answer.lines[11:] == ["  … and 2 more"]
    assert statuses() == ["FAILED"] * 12
    shown = once("retry", "--queue", "default", "--dry-run", "--json").json
    assert shown == {"dry_run": True, "jobs": 12, "first": [str(job) for job in jobs[:10]]}


def test_what_has_not_ended_is_told_and_is_a_problem_only_if_it_was_named():
    (bad,), waits = failed(), store()

    answer = once("retry", bad, waits, "--yes")

    assert (answer.code, answer.out) == (
        1, "Retried 1 job. 1 job had not ended, or ran just now.\n",
    )  # fmt: skip


def test_an_unknown_id_is_told_and_the_others_are_done():
    (bad,), nobody = failed(), uuid4()

    answer = once("retry", bad, nobody, "--yes")

    assert (answer.code, answer.out) == (1, "Retried 1 job.\n")
    assert answer.err.strip() == f"No job has an id that begins with '{nobody}'."


@pytest.mark.parametrize("verb", ["retry", "cancel"])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Say which jobs to {verb}: ids, or filters such as --task, --queue or --state."),
        (["abc", "--yes"], "'abc' is no id of a job, nor its first four or more digits."),
        (["ffff", "--queue", "a"], "Name ids or filters, not both: --queue would not be looked at"),
        (["--backend", "nobody", "--queue", "a"], "TASKS has no backend 'nobody'."),
        (["--state", "odd"], "invalid choice: 'odd'"),
    ],
)
def test_what_cannot_be_meant_is_refused(verb, words, sentence):
    answer = once(verb, *words)

    assert (answer.out, sentence.format(verb=verb) in answer.err) == ("", True), answer.err
    assert answer.code == (2 if "invalid" not in sentence else 1)


def test_nothing_that_matches_is_no_problem_and_no_question():
    answer = once("retry", "--queue", "nobody")

    assert (answer.code, answer.out) == (0, "Retried 0 jobs.\n")


def test_ten_thousand_jobs_are_retried_in_pages():
    # Written by hand: a verb of ours would take longer to make them than to retry them.
    Job.objects.bulk_create(
        [
            Job(
                id=UUID(int=(0x7 << 76) | n), status="FAILED", reason="lost", task="t",
                finished_at="2026-01-01T00:00:00Z",
                history='[{"at":"2026-01-01T00:00:00Z","kind":"lost","attempt":0,"worker":"",'
                '"error":"e","traceback":""}]',
            )
            for n in range(10_000)
        ],
        batch_size=1_000,
    )  # fmt: skip

    began = time.monotonic()
    answer = once("retry", "--reason", "lost", "--yes", "--json")

    assert answer.json == {"retried": 10_000, "not_ended": 0}
    assert time.monotonic() - began < 60
    assert Job.objects.filter(status="READY", position__isnull=False).count() == 10_000


def test_a_job_that_fails_again_at_once_is_not_retried_for_ever(monkeypatch):
    from django_once.management.verbs import retry as verb

    failed(3)
    monkeypatch.setattr("django_once.management.selection.PAGE", 1)
    retried = verb.retry_jobs

    def and_fail(*words):
        count = retried(*words)
        # A job that came and failed meanwhile was not meant either.
        if Job.objects.count() < 10:
            store()
        settle("default", [failure(one) for one in claim(a_worker())])
        return count

    monkeypatch.setattr(verb, "retry_jobs", and_fail)

    assert once("retry", "--state", "failed", "--yes").out == "Retried 3 jobs.\n"


# once cancel


def test_cancelled_jobs_are_counted_by_what_became_of_them():
    runs = store(queue="mail")
    claim_one()
    waits, later = store(queue="mail"), store(queue="mail", run_after=timedelta(hours=1))

    answer = once("cancel", "--queue", "mail", "--yes")

    assert (answer.code, answer.out) == (0, "Cancelled 2 jobs. Asked 1 that runs to end.\n")
    assert [row(job).reason for job in (waits, later)] == ["cancelled"] * 2
    assert row(runs).cancel_requested_at is not None


def test_a_cancel_for_a_program_has_these_keys():
    runs = store()
    claim_one()
    waits = store()
    (ended,) = failed(queue="low")

    answer = once("cancel", runs, waits, ended, "--yes", "--json")

    assert answer.code == 1
    assert answer.json == {"cancelled": 0, "requested": 1, "busy": 0, "had_ended": 2}


def test_a_job_that_a_transaction_holds_is_told_as_busy():
    if connection.vendor == "sqlite":
        pytest.skip("On SQLite a transaction that writes holds the whole database.")
    job = store()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE once_job SET priority = 1")
        try:
            answer = once("cancel", job, "--yes")
        finally:
            cursor.execute("ROLLBACK")
            other.close()

    told = "Cancelled 0 jobs. 1 job held by an open transaction: try again.\n"
    assert (answer.code, answer.out) == (1, told)
    assert row(job).status == "READY"


def test_what_had_ended_cannot_be_meant_by_a_filter():
    answer = once("cancel", "--state", "failed", "--yes")

    assert "invalid choice: 'failed'" in answer.err


def test_jobs_are_steered_in_the_database_of_their_backend():
    from tests.app import tasks

    job = tasks.add_elsewhere.enqueue(1, b=2).id

    assert once("cancel", job, "--yes").code == 0
    assert Job.objects.using("other").get().reason == "cancelled"
    assert once("retry", "--backend", "default", job, "-y").code == 1
    assert once("retry", "--backend", "other", "--state", "failed", "-y").code == 0
    assert Job.objects.using("other").get().status == "READY"
