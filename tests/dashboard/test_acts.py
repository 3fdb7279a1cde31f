"""Acts: what each does, what it says, who may, and the line it leaves in the audit log."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core import signing

from django_once.clock import Now
from django_once.dashboard import bulk
from django_once.models import Job, Lock, Pause, Schedule, Tally, TaskExecution, Worker
from django_once.models.audit import AuditEntry
from django_once.models.job.again import retry
from django_once.models.pause.stop import pause, pauses
from django_once.models.strike.stop import strike
from django_once.scheduling import editing
from tests.app import tasks
from tests.dashboard.people import (
    HOME,
    LOOK,
    OPERATE,
    act,
    failed,
    page,
    somebody,
    told,
)
from tests.jobs import a_worker, claim, claim_one, row, store, store_many
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def log() -> list[tuple[str, str, str, str, int]]:
    """Return who did what to what, by which door, the last first."""
    rows = AuditEntry.objects.order_by("-pk")
    assert all(one.ended_at for one in rows)
    return list(rows.values_list("actor", "door", "act", "kind", "done"))


def a_schedule(name: str = "nightly", **said: object) -> Schedule:
    row = {"name": name, "task": tasks.add.module_path, "every": 3600.0,
           "kwargs": '{"a":1}', **said}  # fmt: skip
    return Schedule.objects.get(pk=editing.add("default", **row))


EVERY_ACT = (
    "retry", "cancel", "pause", "resume", "restore", "drain", "release", "schedule-run",
    "schedule-pause", "schedule-resume", "schedule-enable", "schedule-disable", "schedule-backfill",
)  # fmt: skip


def test_who_may_only_look_cannot_act_by_a_form_of_their_own():
    ended, waits, worker = failed()[0], store(), a_worker("bob")
    schedule = a_schedule()
    before = list(Job.objects.order_by("pk").values())
    said = {"job": [str(ended), str(waits)], "kind": "queue", "name": "default", "reason": "x",
            "worker": str(worker.id), "schedule": str(schedule.pk), "begin": "24h",
            "confirmed": "yes"}  # fmt: skip

    for client in (somebody(LOOK), somebody(), somebody("view_job", "retry_job", "cancel_job")):
        for verb in EVERY_ACT:
            assert client.post(f"{HOME}act/{verb}/", said).status_code == 403
        form = {"verb": "retry", "q": "state:failed"}
        assert client.post(f"{HOME}bulk/", form).status_code == 403
    assert list(Job.objects.order_by("pk").values()) == before
    assert (Pause.objects.count(), AuditEntry.objects.count()) == (0, 0)
    assert Worker.objects.get(pk=worker.id).drain_requested_at is None
    assert Schedule.objects.get().version == schedule.version


def test_no_act_happens_by_looking_or_without_the_word_of_a_form():
    job = failed()[0]
    careful = somebody(OPERATE, checks=True)

    for verb in EVERY_ACT:
        assert careful.get(f"{HOME}act/{verb}/", {"job": str(job)}).status_code == 405
        assert careful.post(f"{HOME}act/{verb}/", {"job": str(job)}).status_code == 403
    assert careful.post(f"{HOME}bulk/", {"verb": "retry", "q": "state:failed"}).status_code == 403
    assert row(job).status == "FAILED"


def test_every_form_carries_the_word():
    failed()
    store()
    schedule = a_schedule()
    pause("default", "default", Pause.QUEUE, "mail")
    a_worker(queues='["*"]')
    client = somebody(OPERATE)

    for address in ("jobs/", "queues/", "workers/", "schedules/", f"schedules/{schedule.pk}/",
                    "confirm/?verb=retry&q=state:failed"):  # fmt: skip
        forms = re.findall(r'<form method="post".*?</form>', page(client, address), re.DOTALL)
        assert forms
        assert all("csrfmiddlewaretoken" in form for form in forms)


def test_jobs_are_retried_and_what_changed_meanwhile_is_said():
    (one, other), waits = failed(2), store()
    client = somebody(OPERATE, name="ann")
    retry("default", [other])

    said = act(client, "retry", job=[str(one), str(other), str(waits)])

    assert "1 job retried, 2 not: they had not ended" in said
    assert row(one).status == "READY"
    assert log() == [("ann", "dashboard", "retry", "job", 1)]


def test_jobs_are_cancelled_and_counted_by_what_became_of_them():
    ended, runs = failed()[0], store()
    claim_one()
    waits = store()

    said = act(somebody(OPERATE), "cancel", job=[str(ended), str(runs), str(waits)])

    assert said == "1 job cancelled, 1 asked to end, 1 had ended before."
    assert row(runs).cancel_requested_at is not None


@pytest.mark.parametrize("jobs", [[], ["x"], ["x" * 32], [str(uuid4())] * 501])
def test_what_is_no_job_is_refused(jobs):
    assert "selected" in act(somebody(OPERATE), "retry", job=jobs)
    assert AuditEntry.objects.count() == 0


def test_a_queue_is_paused_with_a_reason_and_resumed():
    client = somebody(OPERATE, name="ann")

    said = act(client, "pause", kind="queue", name="mail", backend="default", reason="relay down",
               until="2h")  # fmt: skip
    (found,) = pauses("default", ["default"])

    assert "'mail' is paused" in said
    assert (found.reason, found.paused_by) == ("relay down", "ann")
    assert found.until is not None
    assert "relay down" in page(client, "queues/")
    assert "goes on" in act(client, "resume", kind="queue", name="mail", backend="default")
    assert "was not paused" in act(client, "resume", kind="queue", name="mail", backend="default")
    assert [line[2] for line in log()] == ["resume", "resume", "pause"]


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "planet", "name": "x"}, {"kind": "queue", "name": ""},
        {"kind": "queue", "name": "x", "backend": "nowhere"},
        {"kind": "queue", "name": "x", "until": "soon"},
        {"kind": "queue", "name": "x", "until": "2001-01-01"},
        {"kind": "queue", "name": "x" * 300}, {"kind": "queue", "name": "a\x00b"},
    ],
)  # fmt: skip
def test_a_pause_that_makes_no_sense_is_refused(said):
    act(somebody(OPERATE), "pause", **said)

    assert pauses("default", ["default"]) == []


def test_a_task_that_rests_goes_on_and_a_strike_is_taken_back():
    Tally.objects.create(task="shop.charge", opened_at=Now(), reopens_at=Now())
    strike("default", "default", "shop.mail", {"tenant": 7}, reason="spam", by="bob")
    client = somebody(OPERATE, "view_payload", name="ann")

    assert "rests: too many" in page(client)
    shown = page(client, "queues/")
    assert "shop.charge" in shown
    assert "&quot;tenant&quot;: 7" in shown
    assert "goes on" in act(client, "resume", kind="breaker", name="shop.charge")
    (id,) = re.findall(r'name="id" value="(\w+)"', shown)
    assert "may run again" in act(client, "restore", id=id)
    assert "not there any more" in act(client, "restore", id=id)
    assert "opens by itself" in act(client, "pause", kind="breaker", name="shop.charge")
    assert [line[2:4] for line in log()] == [("restore", "task"), ("resume", "breaker")]


def test_a_schedule_is_run_paused_resumed_and_disabled():
    schedule = a_schedule()
    client = somebody(OPERATE)
    form = {"schedule": str(schedule.pk)}

    assert "runs now" in act(client, "schedule-run", **form)
    assert "is paused" in act(client, "schedule-pause", reason="holiday", until="2h", **form)
    assert "holiday" in page(client, f"schedules/{schedule.pk}/")
    assert "fires again" in act(client, "schedule-resume", **form)
    assert "is disabled" in act(client, "schedule-disable", **form)
    assert "is enabled" in act(client, "schedule-enable", **form)
    assert Job.objects.count() == TaskExecution.objects.count() == 1
    assert len(log()) == 5


def test_a_schedule_that_is_gone_is_told():
    assert "not there any more" in act(somebody(OPERATE), "schedule-run", schedule=str(uuid4()))
    assert "not there any more" in act(somebody(OPERATE), "schedule-run", schedule="x")


def test_a_backfill_is_shown_first_and_run_when_agreed():
    schedule = a_schedule()
    Schedule.objects.update(rule_since=schedule.rule_since - timedelta(hours=5))
    client = somebody(OPERATE)
    form = {"schedule": str(schedule.pk), "begin": "3h30m"}

    shown = client.post(f"{HOME}act/schedule-backfill/", form).content.decode()
    assert re.search(r"<strong>[34]</strong> moments have no run", shown)
    assert Job.objects.count() == 0

    fixed = dict(re.findall(r'name="(begin|end|rate)" value="([^"]*)"', shown))
    said = act(client, "schedule-backfill", confirmed="yes", **{**form, **fixed})
    assert re.match(r"[34] runs were begun", said)
    assert Job.objects.count() in (3, 4)
    assert log()[0][2:4] == ("backfill", "schedule")


@pytest.mark.parametrize(
    "said",
    [
        {"begin": ""}, {"begin": "x"}, {"begin": "1h", "rate": "fast"},
        {"begin": "1h", "end": "2h"}, {"begin": "1h", "rate": "-1"},
    ],
)  # fmt: skip
def test_a_backfill_that_makes_no_sense_is_refused(said):
    schedule = a_schedule()

    assert act(somebody(OPERATE), "schedule-backfill", schedule=str(schedule.pk), confirmed="yes",
               **said)  # fmt: skip
    assert Job.objects.count() == 0


def test_a_worker_and_its_siblings_are_asked_to_drain_once():
    supervisor = uuid4()
    workers = [a_worker(f"web-{n}", supervisor=supervisor) for n in range(2)]
    a_worker("other", supervisor=uuid4())
    client = somebody(OPERATE)

    assert "Asked to drain: web-0, web-1." in act(client, "drain", worker=str(workers[0].id))
    assert Worker.objects.filter(drain_requested_at__isnull=False).count() == 2
    assert "drains already" in act(client, "drain", worker=str(workers[1].id))


def test_a_lock_is_taken_away_with_a_reason():
    from django_once.locks import acquire_task_lock

    acquire_task_lock("ann", "export:7")
    name = Lock.objects.get().name
    client = somebody(OPERATE, name="root")

    assert "Say why" in act(client, "release", name=name)
    said = act(client, "release", name=name, reason="ann is gone")
    assert "taken from its holder" in said
    assert Lock.objects.get().released_by == "root (dashboard)"
    assert "released meanwhile" in act(client, "release", name=name, reason="again")


def test_an_act_leads_back_to_its_page_and_nowhere_else():
    client = somebody(OPERATE)
    job = failed()[0]

    for address, target in (
        (f"{HOME}jobs/?q=x", f"{HOME}jobs/?q=x"), ("https://evil.example/", HOME),
        ("//evil.example", HOME), ("javascript:alert(1)", HOME), ("", HOME),
    ):  # fmt: skip
        answer = client.post(f"{HOME}act/retry/", {"job": str(job), "next": address})
        assert (answer.status_code, answer["Location"]) == (302, target)


def test_an_unknown_act_is_told():
    assert somebody(OPERATE).post(f"{HOME}act/destroy/").status_code == 404


# All that match.


def test_all_that_match_are_counted_agreed_to_and_retried():
    meant, others = failed(7, task="shop.charge"), failed(3, task="shop.mail")
    client = somebody(OPERATE, name="ann")

    shown = page(client, "confirm/", verb="retry", q="state:failed task:charge")
    assert "<strong>7</strong> jobs match" in shown
    answer = client.post(f"{HOME}bulk/", {"verb": "retry", "q": "state:failed task:charge"},
                         follow=True)  # fmt: skip

    assert told(answer.content.decode()) == "Retried 7 jobs."
    assert {row(job).status for job in meant} == {"READY"}
    assert {row(job).status for job in others} == {"FAILED"}
    assert log() == [("ann", "dashboard", "retry", "jobs", 7)]
    assert AuditEntry.objects.get().about == "state:failed task:charge"


def test_it_goes_on_in_batches_until_all_is_done(monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 3)
    monkeypatch.setattr(bulk, "SECONDS", -1.0)
    failed(8)
    client = somebody(OPERATE)
    form = {"verb": "retry", "q": "state:failed", "next": f"{HOME}jobs/"}

    answer, rounds = client.post(f"{HOME}bulk/", form), 0
    while answer.status_code == 200:
        rounds += 1
        (course,) = re.findall(r'name="course" value="([^"]+)"', answer.content.decode())
        assert AuditEntry.objects.get().ended_at is None
        answer = client.post(f"{HOME}bulk/", {"course": course, "next": f"{HOME}jobs/"})

    assert rounds == 2
    assert Job.objects.filter(status="READY").count() == 8
    assert AuditEntry.objects.get().done == 8


def test_what_fails_again_meanwhile_is_not_retried_twice():
    jobs = failed(2)
    client = somebody(OPERATE)
    begun = bulk.Course("retry", "state:failed", "default", User.objects.get().username,
                        "2026-01-01T00:00:00+00:00", 2, 0)  # fmt: skip

    from dataclasses import asdict

    signed = signing.dumps(asdict(begun), salt=bulk.SALT)
    client.post(f"{HOME}bulk/", {"course": signed})

    assert {row(job).status for job in jobs} == {"FAILED"}


def test_a_form_that_somebody_changed_does_nothing():
    jobs = failed(1)
    client = somebody(OPERATE)

    assert client.post(f"{HOME}bulk/", {"course": "x:y:z"}).status_code == 404
    assert row(jobs[0]).status == "FAILED"


@pytest.mark.parametrize(
    "said",
    [
        {"verb": "retry", "q": ""}, {"verb": "retry", "q": "state:ready"},
        {"verb": "cancel", "q": "state:failed"}, {"verb": "destroy", "q": "state:failed"},
        {"verb": "retry", "q": "state:faild"}, {"verb": "cancel", "q": "-state:failed"},
    ],
)  # fmt: skip
def test_all_that_match_must_be_such_that_all_can_be(said):
    store()
    client = somebody(OPERATE)

    assert client.get(f"{HOME}confirm/", said).status_code == 404
    assert client.post(f"{HOME}bulk/", said).status_code == 404


def test_all_that_wait_are_cancelled():
    store_many(3)
    runs = store(queue="low")
    claim(a_worker(), 1, ["low"])

    answer = somebody(OPERATE).post(f"{HOME}bulk/", {"verb": "cancel", "q": "state:open"},
                                    follow=True)  # fmt: skip

    assert told(answer.content.decode()) == "Cancelled 4 jobs."
    assert row(runs).cancel_requested_at is not None


# The log.


def test_the_shell_and_the_admin_leave_their_lines_too():
    job = failed()[0]
    root = somebody("view_job", "retry_job", name="ann")

    once("pause", "queue", "mail", "--reason", "relay down")
    once("resume", "queue", "mail")
    once("cancel", "--state", "ready", "--yes")
    once("retry", str(job), "--yes")
    once("cancel", str(job), "--yes")
    root.post("/admin/once/job/", {"action": "retry_selected", "_selected_action": str(job)})

    assert [line[1:] for line in log()] == [
        ("admin", "retry", "job", 1), ("shell", "cancel", "jobs", 1), ("shell", "retry", "jobs", 1),
        ("shell", "cancel", "jobs", 0), ("shell", "resume", "queue", 1),
        ("shell", "pause", "queue", 1),
    ]  # fmt: skip
    assert "@" in log()[1][0]


def test_a_job_shows_what_people_did_to_it():
    job = failed()[0]
    client = somebody(OPERATE, name="ann")
    act(client, "retry", job=[str(job)])

    assert "Retry by ann" in page(client, f"jobs/{job}/")
    shown = page(client, "audit/")
    assert "1 job retried." in shown
    assert page(client, "audit/?actor=nobody").count("1 job retried.") == 0


def test_an_act_that_raises_is_on_record():
    from django_once.models import audit

    with (
        pytest.raises(ZeroDivisionError),
        audit.acted("default", actor="ann", door="shell", act="prune", kind="jobs", about="all"),
    ):
        raise ZeroDivisionError("no")

    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.ended_at is not None) == ("failed: no", True)


def test_the_log_is_read_page_by_page():
    for n in range(60):
        AuditEntry.objects.create(actor="ann", act="retry", about=f"job-{n}-", ended_at=None)
    client = somebody(LOOK)

    first = page(client, "audit/")
    (further,) = re.findall(r"before=(\d+)", first)
    second = page(client, f"audit/?before={further}")

    assert ("job-59-" in first, "job-9-" in first, "job-9-" in second) == (True, False, True)
