"""`once jobs` and `once show`: what a person reads, and what a program does."""

from __future__ import annotations

import json
import re
from uuid import UUID, uuid4

import pytest

from django_once.models import Job, Worker
from django_once.models.job.cancel import cancel
from django_once.models.job.settle import settle
from django_once.testing import moved_clock
from tests.jobs import (
    a_worker,
    another_try,
    claim,
    claim_one,
    failure,
    store,
    store_many,
    success,
)
from tests.management.shapes import ENTRY, JOB, one_of_each, refuse_difference
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def ids(*words: object) -> list[UUID]:
    """Return the ids of the jobs that are listed, as a program reads them."""
    return [UUID(job["id"]) for job in once("jobs", "--json", *words).json["jobs"]]


# once jobs


def test_jobs_are_listed_the_newest_first_in_aligned_columns_without_colours():
    jobs = one_of_each()

    answer = once("jobs")

    assert (answer.code, answer.err) == (0, "")
    assert "\x1b" not in answer.out
    title, *rows = answer.lines
    assert title.split() == ["ID", "STATE", "TASK", "QUEUE", "ATTEMPT", "ENQUEUED", "ENDED",
                             "WORKER"]  # fmt: skip
    assert [UUID(line.split()[0]) for line in rows] == sorted(jobs.values(), reverse=True)
    for name in ("STATE", "TASK", "QUEUE"):
        at = title.index(name)
        assert {line[at - 1] for line in rows} == {" "}
        assert " " not in {line[at] for line in rows}
    for name in ("ATTEMPT", "ENQUEUED"):
        end = title.index(name) + len(name)
        assert " " not in {line[end - 1] for line in rows}
    assert all(line == line.rstrip() for line in answer.lines)


def test_a_listed_job_has_these_keys_and_no_arguments():
    one_of_each()

    answer = once("jobs", "--json")

    assert (answer.code, list(answer.json)) == (0, ["jobs", "more"])
    assert len(answer.json["jobs"]) == 6
    for job in answer.json["jobs"]:
        refuse_difference(job, JOB)
    assert "secret" not in answer.out
    assert "secret" not in once("jobs").out


def test_arguments_are_shown_to_who_asks_for_them():
    job = store(args='[{"a":"ä"}]', kwargs='{"b":1}')

    assert '[{"a":"ä"}] {"b":1}' in once("jobs", "--args").out
    (found,) = once("jobs", "--args", "--json").json["jobs"]
    assert (found["args"], found["kwargs"], found["return_value"]) == ([{"a": "ä"}], {"b": 1}, None)
    assert once("show", job, "--args", "--json").json["args"] == [{"a": "ä"}]


@pytest.mark.parametrize(
    "state", ["ready", "running", "scheduled", "blocked", "failed", "successful"]
)
def test_jobs_are_chosen_by_where_they_stand(state):
    jobs = one_of_each()

    assert ids("--state", state) == [jobs[state]]
    assert set(ids("--state", state, "--state", "ready")) == {jobs[state], jobs["ready"]}


def test_jobs_are_chosen_by_what_they_have_in_common():
    lost = store(task="shop.tasks.charge", queue="mail")
    settle("default", [failure(claim_one(a_worker("ann")), reason="lost")])
    other = store(task="shop.tasks.recharge")

    assert ids("--task", "charge") == ids("--task", "shop.tasks.charge") == [lost]
    assert ids("--task", "recharge") == [other]
    assert ids("--queue", "mail") == ids("--worker", "ann") == ids("--reason", "lost") == [lost]
    worker = Job.objects.get(pk=lost).worker
    assert ids("--worker", worker) == [lost]
    assert ids("--queue", "mail", "--reason", "raised") == []
    assert ids("--backend", "other") == []


def test_since_looks_at_the_end_of_what_has_ended_and_else_at_the_enqueue():
    ended, waits = store(), store()
    with moved_clock("2h"):
        attempt = claim_one()
        settle("default", [success(attempt)])

    with moved_clock("3h"):
        assert ids("--since", "90m", "--state", "successful") == [ended]
        assert ids("--since", "30m", "--state", "successful") == []
        assert ids("--since", "90m") == []
        assert set(ids("--since", "14400")) == {ended, waits}


def test_a_list_says_when_there_is_more():
    store_many(3)

    assert once("jobs", "--limit", 2, "--json").json["more"] is True
    assert once("jobs", "--limit", 3, "--json").json["more"] is False
    *_, last = once("jobs", "--limit", 2).lines
    assert last == "… and more: --limit 4 shows them, filters choose among them."


def test_an_empty_list_is_told_and_is_no_problem():
    answer = once("jobs")

    assert (answer.code, answer.out) == (0, "No job matches.\n")
    assert once("jobs", "--json").json == {"jobs": [], "more": False}


def test_jobs_of_all_databases_are_listed_the_newest_first():
    from tests.app import tasks

    first = store()
    second = UUID(tasks.add_elsewhere.enqueue(1, b=2).id)
    third = store()

    assert ids() == [third, second, first]
    assert ids("--limit", 2) == [third, second]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--limit", "0"], "--limit must be at least 1, got 0."),
        (["--since", "soon"], "--since must be a timedelta, seconds, or text such as"),
        (["--since", "-5"], "--since must not be negative"),
        (["--since", "nan"], "--since must be"),
        (["--backend", "nobody"], "TASKS has no backend 'nobody'. There are: default, "),
        (["--backend", "dummy"], "this is about jobs of 'django_once.backend.DatabaseBackend'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(words, sentence):
    answer = once("jobs", *words)

    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("verb", [("jobs",), ("show", "{job}"), ("workers",), ("status",)])
def test_what_would_steer_the_terminal_is_shown_as_its_number(verb):
    evil = "a\x1b[31mb\r\x07\u202ec\nd"
    worker = a_worker(evil, host=evil, queues=json.dumps([evil]))
    job = store(task=evil, queue=evil)
    claim(worker, 1)
    store(task=evil, queue=evil)
    Job.objects.filter(pk=job).update(key=evil, batch=evil, limit_key=evil, channel=evil)

    a_worker("eve", queues='["nothing"]')
    if verb == ("status",):
        Worker.objects.filter(pk=worker.id).update(queues='["nothing"]')

    out = once(*(word.format(job=job) for word in verb)).out

    assert "\\x1b[31mb\\r\\x07\\u202ec" in out
    assert not set(out) & set("\x1b\r\x07\u202e")


# once show


def test_a_job_is_shown_whole_in_the_order_in_which_it_happened():
    job = store(max_attempts=2, task="shop.charge")
    settle("default", [another_try(claim_one(a_worker("ann")))])
    settle("default", [failure(claim_one(a_worker("bob")))])

    answer = once("show", job)

    assert (answer.code, answer.err) == (0, "")
    assert answer.lines[0] == f"Job {job}"
    wanted = [
        r"  state      failed \(raised\)", r"  task       shop\.charge",
        r"  budgets    attempt 2 of 2, 2 failed, 0 of \d deaths", r"  .* enqueued \(",
        r"  .* first started", r"  .* attempt 1 on ann: raised, builtins.ValueError",
        r"  .* attempt 2 on bob: raised, builtins.ValueError",
        r"  .* failed \(raised\), attempt 2 on bob",
    ]  # fmt: skip
    places = [
        next(n for n, line in enumerate(answer.lines) if re.match(one, line)) for one in wanted
    ]
    assert places == sorted(places)
    assert "Traceback" not in answer.out
    assert "ValueError: no" in once("show", job, "-v", 2).out


def test_a_shown_job_has_these_keys_too():
    job = store(args='["secret"]')
    settle("default", [failure(claim_one())])

    shown = once("show", job, "--json")

    refuse_difference(shown.json, {**JOB, "history": list, "meta": dict})
    (entry,) = shown.json["history"]
    refuse_difference(entry, ENTRY)
    assert entry["traceback"] is None
    assert "secret" not in shown.out + once("show", job).out
    (entry,) = once("show", job, "--json", "-v", 2).json["history"]
    assert "ValueError: no" in entry["traceback"]


def test_each_state_is_told_in_its_words():
    jobs = one_of_each()
    cancel("default", [jobs["running"]])
    cancel("default", [jobs["scheduled"]])

    def told(state: str) -> str:
        return next(line for line in once("show", jobs[state]).lines if "state " in line).split(
            maxsplit=1
        )[1]

    assert {state: told(state) for state in jobs} == {
        "ready": "ready", "running": "running (cancel requested)", "successful": "successful",
        "failed": "failed (raised)", "scheduled": "failed (cancelled)",
        "blocked": "blocked (unknown_task)",
    }  # fmt: skip


def test_a_beginning_of_an_id_is_enough():
    job = UUID("ffff1234-aaaa-7bbb-8ccc-123456789abc")
    store(id=job)
    store()

    for text in ("ffff", "ffff1234", "FFFF1234-AA", "ffff1234aaaa7", str(job), job.hex, f"{job} "):
        assert once("show", text, "--json").json["id"] == str(job), text


def test_an_ambiguous_beginning_is_refused_and_its_jobs_are_named():
    jobs = [UUID(f"ffff1234-aaaa-7bbb-8ccc-12345678900{n}") for n in range(2)]
    for job in jobs:
        store(id=job)

    answer = once("show", "ffff")

    assert (answer.code, answer.out) == (2, "")
    assert f"'ffff': {jobs[0]}, {jobs[1]}. Write more of it." in answer.err


@pytest.mark.parametrize("text", ["abc", "xyz-", "", "0" * 33, "12345;--", "\x1b[31m"])
def test_a_malformed_id_is_refused(text):
    answer = once("show", text)

    assert (answer.code, answer.out) == (2, "")
    assert "is no id of a job, nor its first four or more digits." in answer.err
    assert "\x1b" not in answer.err


def test_an_unknown_id_is_a_problem():
    answer = once("show", uuid4())

    assert (answer.code, answer.out) == (1, "")
    assert "No job has an id that begins with" in answer.err


def test_a_job_of_another_backend_is_found_without_saying_which():
    from tests.app import tasks

    job = tasks.add_elsewhere.enqueue(1, b=2).id

    assert once("show", job, "--json").json["backend"] == "other"
    assert once("show", job, "--backend", "default").code == 1
