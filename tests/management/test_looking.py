"""`once jobs`, `show`, `workers` and `status`: what a person reads, and what a program does."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from django_once import __version__
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
    given_back,
    store,
    store_many,
    success,
)
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]

TEXT, NUMBER, WHOLE, NOTHING = str, (int, float), int, type(None)
MOMENT = "a moment"
# The keys of `--json`, which programs rely on, with what stands under them.
JOB: dict[str, Any] = {
    "id": TEXT, "backend": TEXT, "task": TEXT, "queue": TEXT, "priority": WHOLE, "state": TEXT,
    "status": TEXT, "reason": TEXT, "blocked_by": TEXT, "delivery": TEXT, "attempt": WHOLE,
    "max_attempts": WHOLE, "failures": WHOLE, "deaths": WHOLE, "max_deaths": WHOLE, "fence": WHOLE,
    "claim": (TEXT, NOTHING), "worker": (TEXT, NOTHING), "worker_name": TEXT,
    "enqueued_at": MOMENT, "run_after": MOMENT, "due_at": MOMENT, "started_at": MOMENT,
    "last_attempted_at": MOMENT, "finished_at": MOMENT, "expires_at": MOMENT,
    "cancel_requested_at": MOMENT, "timeout": (*NUMBER, NOTHING), "key": (TEXT, NOTHING),
    "generation": WHOLE, "limit_key": (TEXT, NOTHING), "batch": (TEXT, NOTHING),
    "channel": (TEXT, NOTHING),
}  # fmt: skip
ENTRY = {
    "at": MOMENT, "kind": TEXT, "attempt": WHOLE, "worker": TEXT, "error": TEXT,
    "traceback": (TEXT, NOTHING),
}  # fmt: skip
WORKER: dict[str, Any] = {
    "id": TEXT, "name": TEXT, "backend": TEXT, "state": TEXT, "host": TEXT, "pid": WHOLE,
    "queues": list, "tasks": list, "concurrency": WHOLE, "running": WHOLE, "version": TEXT,
    "supervisor": (TEXT, NOTHING), "started_at": MOMENT, "renewed_at": MOMENT,
    "leased_until": MOMENT, "lost_at": MOMENT, "stopped_at": MOMENT,
}  # fmt: skip
STATUS = {"version": TEXT, "now": MOMENT, "ok": bool, "problems": list, "backends": list}
BACKEND = {
    "backend": TEXT, "database": TEXT, "queues": list, "at_least": list, "last_minute": dict,
    "workers": dict, "problems": list,
}  # fmt: skip
QUEUE = {
    "queue": TEXT, "ready": WHOLE, "running": WHOLE, "scheduled": WHOLE, "blocked": WHOLE,
    "oldest_ready_seconds": (*NUMBER, NOTHING),
}  # fmt: skip
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def refuse_difference(found: dict[str, Any], shape: dict[str, Any]) -> None:
    """Refuse other keys, another order of them, and values of another kind."""
    assert list(found) == list(shape)
    for key, kind in shape.items():
        if kind == MOMENT:
            assert found[key] is None or ISO.fullmatch(found[key]), (key, found[key])
        else:
            assert isinstance(found[key], kind), (key, found[key])


def one_of_each() -> dict[str, UUID]:
    """Leave a job in each state; return them by the words for these."""
    jobs = {}
    for state, outcome in (("successful", success), ("failed", failure)):
        jobs[state] = store(args='["secret"]')
        settle("default", [outcome(claim_one())])
    jobs["blocked"] = store()
    settle("default", [given_back(claim_one(), blocked_by="unknown_task")])
    jobs["running"] = store()
    claim_one()
    jobs["scheduled"] = store(run_after=timedelta(hours=1))
    jobs["ready"] = store()
    return jobs


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


# once workers


def test_workers_are_listed_with_where_they_stand():
    alive = a_worker("ann", host="h1", pid=7, queues='["a","b"]', concurrency=4)
    a_worker("bob", lease=timedelta(seconds=-90))
    store()
    claim(alive)

    answer = once("workers")

    assert (answer.code, "\x1b" in answer.out) == (0, False)
    title, *rows = answer.lines
    assert title.split() == ["NAME", "STATE", "HOST", "PID", "QUEUES", "JOBS", "STARTED", "LEASE",
                             "ENDED", "ID"]  # fmt: skip
    told = {line.split()[0]: line for line in rows}
    assert re.search(r"alive +h1 +7 +a, b +1/4 .* 59 m +– ", told["ann"])
    assert re.search(r"lapsed .* over for 1 m +– ", told["bob"])


def test_a_worker_has_these_keys():
    a_worker("ann", queues='["a"]', tasks='["t"]')

    answer = once("workers", "--json")

    (worker,) = answer.json["workers"]
    refuse_difference(worker, WORKER)
    assert (worker["queues"], worker["tasks"], worker["state"]) == (["a"], ["t"], "alive")


def test_workers_that_ended_long_ago_are_left_out():
    worker = a_worker("ann")
    Worker.objects.filter(pk=worker.id).update(stopped_at=datetime(2026, 1, 1))

    assert once("workers").out == "No worker is running. Start one: python manage.py once worker\n"
    (found,) = once("workers", "--json", "--since", "3000d").json["workers"]
    assert found["state"] == "stopped"


# once status


def test_all_is_well_when_nothing_is_wrong():
    a_worker("ann", queues='["*"]')
    store()

    answer = once("status", "--backend", "default")

    assert (answer.code, answer.lines[-1]) == (0, "All is well.")
    assert answer.lines[1].split() == [
        "QUEUE", "READY", "RUNNING", "SCHEDULED", "BLOCKED", "OLDEST", "READY",
    ]  # fmt: skip
    assert "\x1b" not in answer.out


def test_the_status_has_these_keys():
    one_of_each()

    answer = once("status", "--json")

    refuse_difference(answer.json, STATUS)
    assert answer.json["version"] == __version__
    assert [one["backend"] for one in answer.json["backends"]] == ["default", "other"]
    for backend in answer.json["backends"]:
        refuse_difference(backend, BACKEND)
        assert list(backend["last_minute"]) == ["failed", "successful"]
        assert list(backend["workers"]) == ["alive", "lapsed"]
        for queue in backend["queues"]:
            refuse_difference(queue, QUEUE)
    (queue,) = [one for one in answer.json["backends"][0]["queues"] if one["queue"] == "default"]
    states = [queue[state] for state in ("ready", "running", "scheduled", "blocked")]
    assert states == [1, 1, 1, 1]
    assert queue["oldest_ready_seconds"] >= 0
    assert answer.json["backends"][0]["last_minute"] == {"failed": 1, "successful": 1}


def test_what_is_wrong_is_told_with_what_to_do_and_in_the_exit_status():
    store(queue="mail")
    assert "Start one: python manage.py once worker" in once("status").out

    a_worker("ann", queues='["default"]')
    answer = once("status")
    assert answer.code == 1
    assert "Queue 'mail' has 1 job that could run, and no worker takes from it." in answer.out
    assert once("status", "--json").json["ok"] is False

    settle("default", [given_back(claim_one(a_worker(queues='["*"]')), blocked_by="unknown_task")])
    assert "1 job of backend 'default' cannot run now." in once("status").out

    store()
    lost = a_worker()
    claim(lost)
    Worker.objects.filter(pk=lost.id).update(lost_at=datetime(2026, 1, 1))
    assert "Workers that are gone hold 1 job of backend 'default'." in once("status").out
    a_worker(lease=timedelta(seconds=-1))
    assert "1 worker of backend 'default' has not renewed its lease." in once("status").out


def test_a_queue_that_a_worker_leaves_out_counts_as_unread_only_for_it():
    store(queue="mail")
    a_worker("ann", queues='["*"]')

    assert once("status", "--backend", "default").code == 0


def test_watching_takes_a_sensible_pause():
    answer = once("status", "--watch", 0)

    assert (answer.code, "--watch takes 0.1 to 3600 seconds, got 0." in answer.err) == (2, True)
