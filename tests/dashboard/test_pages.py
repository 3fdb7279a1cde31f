"""The pages: who sees them, what stands there, and whose text it is."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from django_once import redaction
from django_once.models import Job, Lock, Pause, Schedule, Series, Step, Worker
from django_once.models.audit import AuditEntry
from django_once.models.job.settle import settle
from django_once.models.pause.stop import pause
from django_once.scheduling import editing
from tests.app import tasks
from tests.dashboard.people import HOME, LOOK, OPERATE, PAYLOAD, failed, listed, page, somebody
from tests.jobs import a_worker, claim, claim_one, failure, store, store_many, success

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]
EVIL = "<script>alert('x')</script>"
PAGES = (
    "", "?range=7d", "jobs/", "jobs/?q=state:failed", "failures/", "schedules/", "queues/",
    "workers/", "locks/?all=1", "series/", "channels/", "audit/",
    "confirm/?verb=retry&q=state:failed",
)  # fmt: skip


def a_schedule(name: str = "nightly", **said: object) -> Schedule:
    row = {"name": name, "task": tasks.add.module_path, "cron": "0 2 * * *",
           "timezone": "Europe/Paris", "kwargs": '{"a":1}', **said}  # fmt: skip
    return Schedule.objects.get(pk=editing.add("default", **row))


@pytest.mark.parametrize("address", [*PAGES, f"jobs/{uuid4()}/"])
def test_who_may_not_look_sees_nothing(address):
    assert somebody().get(HOME + address).status_code == 403
    assert somebody("view_job", PAYLOAD).get(HOME + address).status_code == 403
    assert Client().get(HOME + address).status_code == 302


@pytest.mark.parametrize("may", [LOOK, OPERATE])
def test_either_permission_lets_people_look(may):
    client = somebody(may)

    for address in PAGES:
        page(client, address)
    assert "dashboard" in client.get("/admin/").content.decode()


def test_who_only_looks_is_offered_nothing_to_do():
    failed()
    store()
    a_schedule()
    pause("default", "default", Pause.QUEUE, "mail")
    a_worker(queues='["*"]')
    looks, acts = somebody(LOOK), somebody(OPERATE)

    for address in ("jobs/", "failures/", "schedules/", "queues/", "workers/"):
        assert 'action="/admin/once/dashboard/act/' not in page(looks, address)
        assert "Read-only" in page(looks, address)
        assert "Read-only" not in page(acts, address)
    assert "act/retry/" in page(acts, "jobs/")


def test_the_overview_counts_and_warns():
    store_many(3, queue="mail")
    store(run_after=timedelta(hours=1))
    failed(2)
    settle("default", [success(claim_one())])

    shown = page(somebody(LOOK))

    assert re.search(r"Ready</a></dt><dd>2", shown)
    assert re.search(r"Scheduled</a></dt><dd>1", shown)
    assert "2 jobs failed in the last hour" in shown
    assert "no worker takes from it" in shown
    assert shown.count("<figure") == 3
    assert "<rect" in shown


def test_a_site_without_workers_says_how_to_start_one():
    store()

    for address in ("", "workers/"):
        assert "python manage.py once worker" in page(somebody(LOOK), address)


def test_a_queue_that_nobody_reads_is_told():
    a_worker(queues='["low"]')
    store(queue="mail")

    shown = page(somebody(LOOK))

    assert "no worker takes from it" in shown
    assert "once worker --queues mail" in shown


def test_without_migrations_the_dashboard_says_how_to_make_the_tables():
    if not connection.features.can_rollback_ddl:
        pytest.skip("This database cannot undo the removal of a table.")
    from django.db import transaction

    root = User.objects.create_superuser("root")
    client = Client()
    client.force_login(root)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE app = 'once'")
            cursor.execute("ALTER TABLE once_job RENAME TO once_job_away")
        answer = client.get(HOME) if connection.vendor == "sqlite" else None
        transaction.set_rollback(True)
    if answer is None:
        pytest.skip("A transaction that failed answers nothing more on this database.")

    assert answer.status_code == 503
    assert "python manage.py migrate" in answer.content.decode()


def test_without_a_backend_the_dashboard_says_what_to_write():
    with override_settings(TASKS={"default": {"BACKEND": "django.tasks.backends.dummy.Dummy"}}):
        shown = page(somebody(LOOK), status=503)

    assert "django_once.backend.DatabaseBackend" in shown


def test_a_mistake_in_the_filter_is_shown_at_its_place():
    shown = page(somebody(LOOK), "jobs/?q=queue:mail+state:faild", status=400)

    assert "queue:mail <mark>state:faild</mark>" in shown
    assert "Did you mean failed?" in shown


def test_who_may_not_see_arguments_neither_sees_nor_finds_them():
    job = store(kwargs='{"who":"secret-name"}')
    curious, trusted = somebody(LOOK), somebody(LOOK, PAYLOAD)

    assert "secret-name" not in page(curious, f"jobs/{job}/")
    assert "secret-name" in page(trusted, f"jobs/{job}/")
    page(curious, "jobs/?q=arg:who=secret-name", status=400)
    assert listed(page(trusted, "jobs/?q=arg:who=secret-name")) == [job]


def test_an_argument_inside_another_is_not_meant():
    store(kwargs='{"at":{"who":"ann"}}')

    assert listed(page(somebody(LOOK, PAYLOAD), "jobs/?q=arg:who=ann")) == []


def test_pages_follow_each_other_without_a_gap():
    jobs = store_many(120)
    client = somebody(LOOK)
    found, address = [], "jobs/"
    while address:
        shown = page(client, address)
        found += listed(shown)
        links = re.findall(r'rel="next" href="/admin/once/dashboard/([^"]*)"', shown)
        address = links[0].replace("&amp;", "&") if links else ""

    assert found == sorted(jobs, reverse=True)


def test_one_job_shows_its_way():
    job = store(task=tasks.fail_again.module_path, max_attempts=3, key=None)
    settle("default", [failure(claim_one())])
    Step.objects.create(job=job, name="reserve", value='{"seat":7}')

    shown = page(somebody(LOOK, PAYLOAD), f"jobs/{job}/")

    assert shown.index("Enqueued") < shown.index("First started") < shown.index("Attempt 1 on ann")
    assert "builtins.ValueError → no more: raised" in shown
    assert "ValueError: no" in shown
    assert "reserve" in shown
    assert "&quot;seat&quot;: 7" in shown


def test_a_job_that_waits_says_why():
    job = store(queue="mail")
    pause("default", "default", Pause.QUEUE, "mail", reason="the relay is down", by="ann")

    shown = page(somebody(LOOK), f"jobs/{job}/")

    assert "Why it waits" in shown
    assert "the relay is down" in shown


def test_what_is_not_there_is_said():
    client = somebody(LOOK)

    for address in (f"jobs/{uuid4()}/", f"schedules/{uuid4()}/", f"series/{uuid4()}/"):
        assert "There is no" in page(client, address, status=404)


def test_failures_are_put_together_by_their_error():
    failed(3, task="shop.charge")
    failed(1, task="shop.mail")

    shown = page(somebody(OPERATE), "failures/")

    assert re.findall(r"<strong>(\d+)</strong><span>failure", shown) == ["3", "1"]
    meant = "state:failed task:shop.charge reason:raised error:builtins.ValueError"
    assert quote(meant, safe="").replace("%20", "+") in shown
    assert "ValueError: no" in shown


def test_a_schedule_shows_its_moments_in_both_zones():
    schedule = a_schedule()
    client = somebody(LOOK)

    assert "nightly" in page(client, "schedules/")
    shown = page(client, f"schedules/{schedule.pk}/")
    assert re.search(r"0[01]:00:00 UTC", shown)
    assert re.search(r"02:00:00 CES?T", shown)


def test_the_same_page_is_not_sent_again():
    store()
    client = somebody(OPERATE)
    whole = page(client, "jobs/")
    (etag,) = re.findall(r'data-etag="(&quot;\w+&quot;)"', whole)
    said = {"X-Once-Live": "1", "If-None-Match": etag.replace("&quot;", '"')}

    same = client.get(f"{HOME}jobs/", headers=said)
    store()
    other = client.get(f"{HOME}jobs/", headers=said)

    assert (same.status_code, same.content) == (304, b"")
    assert other.status_code == 200
    assert b"<html" not in other.content
    assert other.headers["ETag"] != said["If-None-Match"]


# Whose text it is.


@pytest.mark.books_may_be_wrong
def test_what_people_wrote_is_shown_as_text_and_never_as_markup():
    worker = a_worker(name=EVIL[:64], host=EVIL, queues=json.dumps([EVIL]))
    job = store(task=EVIL, args=json.dumps([EVIL]), kwargs=json.dumps({EVIL: 1}), queue=EVIL)
    (attempt,) = claim(worker)
    entry = json.dumps({"kind": EVIL, "attempt": 1, "worker": EVIL, "error": EVIL,
                        "traceback": f"</pre>{EVIL}"})[1:]  # fmt: skip
    settle("default", [failure(attempt, entry=entry)])
    Job.objects.filter(pk=job).update(
        meta=json.dumps({"tag": EVIL}), key=EVIL, channel=EVIL, batch=EVIL[:64], reason=EVIL[:32]
    )
    series = Series.objects.create(key=EVIL, job=job)
    Lock.objects.create(name=EVIL, holder=EVIL, fence=1)
    Step.objects.create(job=job, name=EVIL, value=json.dumps(EVIL))
    pause("default", "default", Pause.TASK, EVIL, reason=EVIL, by=EVIL)
    AuditEntry.objects.create(
        actor=EVIL, act=EVIL[:32], about=EVIL, outcome=EVIL, reason=EVIL, job=job
    )
    client = somebody(OPERATE, PAYLOAD)
    evil = quote(EVIL)

    pages = [
        *(page(client, address) for address in PAGES), page(client, f"jobs/{job}/"),
        page(client, f"series/{series.pk}/"), page(client, f"jobs/?q={evil}", status=200),
        page(client, f"jobs/?q=x:{evil}", status=400), page(client, f"series/?q={evil}"),
        page(client, f"locks/?q={evil}"), page(client, f"audit/?actor={evil}"),
        page(client, f"schedules/?q={evil}"), page(client, f"jobs/?after={evil}"),
        page(client, f"confirm/?verb={evil}", status=404),
    ]  # fmt: skip

    for shown in pages:
        assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in pages[2]
    assert "&lt;/pre&gt;&lt;script&gt;" in pages[len(PAGES)]


def test_no_page_has_a_script_or_a_style_of_its_own_or_asks_another_host():
    job = failed()[0]
    a_worker(queues='["*"]')
    client = somebody(OPERATE, PAYLOAD)

    for address in (*PAGES, f"jobs/{job}/"):
        shown = page(client, address)
        assert not re.search(r"<script(?![^>]*\bsrc=)", shown)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", shown)
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', shown)
        assert not re.search(r"{{|}}|{%", shown)


def test_what_a_task_hides_cannot_be_asked_for_letter_by_letter(monkeypatch):
    monkeypatch.setattr(redaction, "rules_of", lambda path, alias: (("password",),))
    (job,) = failed(1, kwargs='{"password":"hunter2"}')
    client = somebody(OPERATE, PAYLOAD)

    for said in ("arg:password=hunter2", "arg:password=other"):
        assert listed(page(client, f"jobs/?q={said}")) == []
        assert listed(page(client, f"jobs/?q=-{said}")) == [job]
        asked = page(client, "confirm/", verb="retry", q=f"state:failed {said}")
        assert "<strong>0</strong> jobs match" in asked
    assert "hunter2" not in page(client, f"jobs/{job}/")


def test_numbers_of_an_address_that_nobody_wrote_do_no_harm():
    client = somebody(LOOK)

    for address in ("audit/?before=x", "audit/?before=99999999999999999999", "audit/?before=²",
                    "jobs/?after=~~", "jobs/?after=x~y", "?range=abc", "locks/?q=%00",
                    "jobs/?q=%00", "?database=nowhere", "series/?after=%00"):  # fmt: skip
        assert client.get(HOME + address).status_code in (200, 400)


def test_each_database_has_its_own_dashboard():
    from tests.app.tasks import add_elsewhere

    there = add_elsewhere.enqueue(1, 2)
    client = somebody(LOOK)

    assert listed(page(client, "jobs/")) == []
    shown = page(client, "jobs/?database=other")
    assert [str(id) for id in listed(shown)] == [there.id]
    assert f"jobs/{there.id}/?database=other" in shown
    page(client, f"jobs/{there.id}/?database=other")


def test_workers_show_what_they_run():
    worker = a_worker(name="web-7", host="vm", queues='["*"]', concurrency=4)
    job = store(task="shop.charge")
    claim(worker)

    shown = page(somebody(LOOK), "workers/")

    assert "web-7" in shown
    assert f"jobs/{job}/" in shown
    assert Worker.objects.count() == 1


def test_no_page_reads_more_of_the_table_than_it_shows():
    failed(2)
    store_many(3)
    store(run_after=timedelta(hours=1))
    job = store(queue="mail")
    client = somebody(OPERATE, PAYLOAD)
    # What runs is never many; one job is found by its id.
    bounded = re.compile(r"LIMIT \d+|RUNNING|\.\"?`?id`?\"? (=|IN)|WHERE job\.id = ")

    for address in (*PAGES, f"jobs/{job}/", "jobs/?q=queue:mail+arg:a=1+error:x+-task:y"):
        with CaptureQueriesContext(connection) as asked:
            page(client, address)
        said = [one["sql"] for one in asked.captured_queries]
        assert [sql for sql in said if "once_job" in sql and not bounded.search(sql)] == []
        assert [sql for sql in said if re.search(r"\bOFFSET [1-9]", sql)] == []
        assert len(said) < 60
