"""The admin's pages: who sees what, what can be done there, and whose text it is."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_once.models import Job, Worker
from django_once.models.job.settle import settle
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
from tests.jobs import a_worker, claim, claim_one, failure, row, store, store_many, success

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]

JOBS, WORKERS = "/admin/once/job/", "/admin/once/worker/"
LOOK, RETRY, CANCEL, PAYLOAD = "view_job", "retry_job", "cancel_job", "view_payload"
EVIL = "<script>alert('x')</script>"


def somebody(*may: str) -> Client:
    """Return the browser of a person of the staff who has these permissions."""
    user = User.objects.create_user(f"user-{uuid4()}", is_staff=True)
    found = Permission.objects.filter(content_type__app_label="once", codename__in=may)
    assert len(found) == len(may)
    user.user_permissions.set(found)
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, address: str = JOBS, **said: Any) -> str:
    answer = client.get(address, said)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def post(client: Client, action: str, *jobs: Any, address: str = JOBS, **said: Any) -> str:
    """Send what the form of the list would send; return the page that follows."""
    form = {"action": action, "_selected_action": [str(job) for job in jobs], **said}
    return client.post(address, form, follow=True).content.decode()


def told(text: str) -> list[str]:
    """Return the messages on a page."""
    return re.findall(r'<li class="(?:success|warning|error|info)">(.*?)</li>', text, re.DOTALL)


def listed(text: str) -> list[UUID]:
    """Return the ids of the jobs in a list, in its order."""
    return [UUID(id) for id in re.findall(r'name="_selected_action" value="([0-9a-f-]+)"', text)]


def buttons(text: str) -> list[str]:
    """Return the words on the buttons of a job's page."""
    return re.findall(r'<button type="submit">(Retry|Cancel)</button>', text)


def failed(**said: Any) -> UUID:
    job = store(**said)
    settle("default", [failure(one) for one in claim(a_worker(), 500) if one.id == job])
    return job


# Who may do what.


@pytest.mark.parametrize("address", [JOBS, WORKERS, f"{JOBS}{uuid4()}/change/"])
def test_who_may_not_look_sees_nothing(address):
    assert somebody().get(address).status_code == 403
    assert Client().get(address).status_code == 302


def test_nothing_is_added_changed_or_deleted_by_hand():
    job, worker = store(), a_worker()
    root = User.objects.create_superuser("root")
    client = Client()
    client.force_login(root)
    before = list(Job.objects.values())

    for place in (f"{JOBS}add/", f"{JOBS}{job}/delete/", f"{WORKERS}add/"):
        assert client.get(place).status_code == 403
        assert client.post(place, {"post": "yes", "status": "FAILED"}).status_code == 403
    assert client.post(f"{JOBS}{job}/change/", {"status": "FAILED"}).status_code == 403
    assert client.post(f"{WORKERS}{worker.id}/delete/", {"post": "yes"}).status_code == 403
    assert "No action selected" in post(client, "delete_selected", job, post="yes")
    assert list(Job.objects.values()) == before


@pytest.mark.parametrize("may", [(), (RETRY,), (CANCEL,), (RETRY, CANCEL)])
def test_each_thing_to_do_needs_its_own_permission(may):
    ended, waits = failed(), store()
    client = somebody(LOOK, *may)

    shown = page(client, JOBS)
    for action, ended_or_waits in (("retry", ended), ("cancel", waits)):
        allowed = f"{action}_job" in may
        assert (f'value="{action}_selected"' in shown) == allowed
        one = page(client, f"{JOBS}{ended_or_waits}/change/")
        assert (f'value="{action}_selected"' in one) == allowed
        assert bool(told(post(client, f"{action}_selected", ended_or_waits))) == bool(may)
    assert row(ended).status == ("READY" if RETRY in may else "FAILED")
    assert row(waits).status == ("FAILED" if CANCEL in may else "READY")


def test_who_may_only_act_and_not_look_cannot_act():
    waits = store()

    answer = somebody(CANCEL).post(
        JOBS, {"action": "cancel_selected", "_selected_action": str(waits)}
    )

    assert (answer.status_code, row(waits).status) == (403, "READY")


def test_arguments_and_results_need_a_permission_of_their_own():
    job = store(args='["secret-a"]', kwargs='{"b":"secret-b"}')
    settle("default", [success(claim_one(), '"secret-c"')])
    curious, trusted = somebody(LOOK), somebody(LOOK, PAYLOAD)

    with CaptureQueriesContext(connection) as asked:
        assert "secret" not in page(curious, f"{JOBS}{job}/change/")
    assert not [one for one in asked.captured_queries if '"return_value"' in one["sql"]]
    shown = page(trusted, f"{JOBS}{job}/change/")
    assert [word in shown for word in ("secret-a", "secret-b", "secret-c")] == [True] * 3
    assert "secret" not in page(trusted)


@pytest.mark.parametrize(
    "lookup", ["kwargs__contains", "args", "return_value__startswith", "pk__in", "id__exact"]
)
def test_an_address_cannot_ask_for_secrets_letter_by_letter(lookup):
    store(kwargs='{"password":"xyzzy"}')

    assert somebody(LOOK).get(JOBS, {lookup: "xyzzy"}).status_code == 400


# Whose text it is.


@pytest.mark.books_may_be_wrong
def test_what_people_wrote_is_shown_as_text_and_never_as_markup():
    worker = a_worker(name=EVIL[:64], host=EVIL, queues=json.dumps([EVIL]))
    job = store(task=EVIL, args=json.dumps([EVIL]), kwargs=json.dumps({EVIL: 1}), queue=EVIL)
    (attempt,) = claim(worker)
    entry = json.dumps({"kind": EVIL, "attempt": 1, "worker": EVIL, "error": EVIL,
                        "traceback": f"</pre>{EVIL}"})[1:]  # fmt: skip
    settle("default", [failure(attempt, entry=entry)])
    Job.objects.filter(pk=job).update(meta=json.dumps({"tag": EVIL}), key=EVIL, channel=EVIL)
    client = somebody(LOOK, RETRY, CANCEL, PAYLOAD, "view_worker")

    pages = [
        page(client), page(client, q=EVIL), page(client, queue=EVIL, task=EVIL),
        page(client, f"{JOBS}{job}/change/"), post(client, "retry_selected", job),
        page(client, f"{JOBS}{job}/history/"),
        page(client, WORKERS), page(client, f"{WORKERS}{worker.id}/change/"),
    ]  # fmt: skip

    for shown in pages:
        assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in pages[0]
    assert "&lt;/pre&gt;&lt;script&gt;" in pages[3]


def test_what_would_steer_a_terminal_is_shown_as_its_number():
    job = store(task="shop.\x1b[31mred\u202e")
    client = somebody(LOOK)

    for shown in (page(client), page(client, f"{JOBS}{job}/change/")):
        assert "shop.\\x1b[31mred\\u202e" in shown
    assert "\x1b" not in page(client)


def test_megabytes_are_cut():
    job = store(args=json.dumps(["a" * 3_000_000]))

    shown = page(somebody(LOOK, PAYLOAD), f"{JOBS}{job}/change/")

    assert len(shown) < 100_000
    assert "more characters" in shown


def test_json_and_tracebacks_are_readable():
    job = store(args='[{"order":7,"ref":"ä"}]')
    settle("default", [failure(claim_one())])

    shown = page(somebody(LOOK, PAYLOAD), f"{JOBS}{job}/change/")

    assert "&quot;order&quot;: 7,\n" in shown
    assert "ä" in shown
    assert re.search(
        r"<details open><summary>.*attempt 1 on ann raised: builtins.ValueError", shown
    )
    assert "ValueError: no" in shown


def test_a_row_that_somebody_spoilt_is_still_shown():
    job = store()
    Job.objects.filter(pk=job).update(args="{not json")

    assert "{not json" in page(somebody(LOOK, PAYLOAD), f"{JOBS}{job}/change/")


# What can be done.


def test_retried_jobs_are_counted_and_those_that_did_not_end_told():
    ended, waits = [failed(), failed()], store()

    answer = post(somebody(LOOK, RETRY), "retry_selected", *ended, waits)

    assert told(answer) == ["2 jobs retried, 1 had not ended, or ran just now."]
    assert {row(job).status for job in ended} == {"READY"}


def test_cancelled_jobs_are_counted_by_what_became_of_them():
    runs = store()
    claim_one()
    ended, waits = failed(), [store(), store(), store(run_after=timedelta(hours=1))]

    answer = post(somebody(LOOK, CANCEL), "cancel_selected", runs, *waits, ended)

    assert told(answer) == ["3 jobs cancelled, 1 asked to end, 1 had ended before."]
    assert [row(job).reason for job in waits] == ["cancelled"] * 3
    assert row(runs).cancel_requested_at is not None


def test_a_job_that_a_transaction_holds_is_told_as_busy():
    if connection.vendor == "sqlite":
        pytest.skip("On SQLite a transaction that writes holds the whole database.")
    job = store()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE once_job SET priority = 1")
        try:
            answer = post(somebody(LOOK, CANCEL), "cancel_selected", job)
        finally:
            cursor.execute("ROLLBACK")
            other.close()

    assert told(answer) == ["0 jobs cancelled, 1 busy: a transaction holds them, try again."]
    assert row(job).status == "READY"


def test_all_that_a_list_holds_can_be_meant_over_its_pages():
    store_many(150, queue="mail")
    other = store()
    client = somebody(LOOK, CANCEL)
    first = listed(page(client, queue="mail"))

    answer = post(
        client, "cancel_selected", *first[:1], address=f"{JOBS}?queue=mail", select_across="1"
    )

    assert len(first) == 100
    assert told(answer) == ["150 jobs cancelled."]
    assert row(other).status == "READY"


def test_who_did_it_stands_in_the_log():
    job = failed()

    post(somebody(LOOK, RETRY), "retry_selected", job)

    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.change_message) == (str(job), "Retried.")


@pytest.mark.parametrize("action", ["retry_selected", "cancel_selected"])
@pytest.mark.parametrize("said", [["nonsense"], ["' OR 1=1 --"], [str(uuid4())], []])
def test_a_form_made_by_hand_changes_nothing_and_breaks_nothing(action, said):
    store()
    failed()
    before = list(Job.objects.order_by("pk").values())

    answer = somebody(LOOK, RETRY, CANCEL).post(
        JOBS, {"action": action, "_selected_action": said}, follow=True
    )

    assert answer.status_code == 200
    assert list(Job.objects.order_by("pk").values()) == before


def test_a_form_needs_its_csrf_secret():
    waits = store()
    client = somebody(LOOK, CANCEL)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies

    answer = strict.post(JOBS, {"action": "cancel_selected", "_selected_action": str(waits)})

    assert (answer.status_code, row(waits).status) == (403, "READY")


def test_the_button_of_a_page_does_what_it_says():
    job = failed()
    client = somebody(LOOK, RETRY)
    shown = page(client, f"{JOBS}{job}/change/")
    (address,) = re.findall(r'<form method="post" action="([^"]+)">', shown)

    assert buttons(shown) == ["Retry"]
    assert told(post(client, "retry_selected", job, address=address)) == ["1 job retried."]
    assert buttons(page(client, f"{JOBS}{job}/change/")) == []


# Which jobs.


def test_states_are_told_in_words_and_chosen_by_them():
    jobs = {
        "failed": failed(), "running": store(),
    }  # fmt: skip
    claim_one()
    jobs["successful"] = store()
    settle("default", [success(claim_one())])
    jobs["scheduled"] = store(run_after=timedelta(hours=1))
    jobs["ready"] = store()
    client = somebody(LOOK, CANCEL)

    for state, job in jobs.items():
        shown = page(client, state=state)
        assert listed(shown) == [job]
        assert f'<span class="once-state once-{state}">{state}' in shown
    assert len(listed(page(client))) == 5


def test_a_list_is_narrowed_by_what_jobs_have_in_common():
    lost = failed(queue="mail", task="shop.send")
    mail, low = store(queue="mail", task="shop.send"), store(queue="low", task="shop.count")
    client = somebody(LOOK, CANCEL)

    def found(**said: str) -> set[UUID]:
        return set(listed(page(client, **said)))

    assert found(queue="mail") == {mail, lost}
    assert found(task="shop.count") == {low}
    assert found(reason="raised") == {lost}
    assert found(state="ready", queue="mail") == {mail}
    assert found(ended="1h") == {lost}
    assert found(state="nonsense") == {mail, low, lost}
    with moved_clock("2h"):
        assert found(ended="1h") == set()


def test_a_job_is_found_by_the_beginning_of_its_id_or_a_part_of_its_task():
    job, other = store(task="shop.charge"), store(task="shop.feed")
    client = somebody(LOOK, CANCEL)

    for text in (str(job), job.hex, str(job).upper(), str(job)[:35], f" {job} "):
        assert listed(page(client, q=text)) == [job]
    assert listed(page(client, q="charge")) == [job]
    assert listed(page(client, q="feed")) == [other]
    assert listed(page(client, q="nobody")) == []


def test_a_click_on_a_column_sorts_by_nothing():
    older, newer = store(), store()

    assert listed(page(somebody(LOOK, CANCEL), o="3.-1")) == [newer, older]


@pytest.mark.parametrize("page_number", ["0", "2", "999999999999", "x"])
def test_a_page_that_is_not_there_breaks_nothing(page_number):
    store()

    assert somebody(LOOK).get(JOBS, {"p": page_number}, follow=True).status_code == 200


@pytest.mark.parametrize("id", ["nonsense", str(uuid4()), "019a", "%00"])
def test_an_unknown_job_is_told_to_be_none(id):
    answer = somebody(LOOK).get(f"{JOBS}{id}/change/", follow=True)

    assert "doesn’t exist" in answer.content.decode()


# Several databases.


def test_jobs_are_read_and_steered_where_their_backend_keeps_them():
    elsewhere = UUID(tasks.add_elsewhere.enqueue(1, b=2).id)
    here = store()
    client = somebody(LOOK, CANCEL, RETRY)

    assert listed(page(client)) == [here]
    assert listed(page(client, backend="other")) == [elsewhere]
    assert "tests.app.tasks.add_elsewhere" in page(client, f"{JOBS}{elsewhere}/change/")
    assert told(post(client, "cancel_selected", elsewhere)) == ["0 jobs cancelled."]
    answer = post(client, "cancel_selected", elsewhere, address=f"{JOBS}?backend=other")
    assert told(answer) == ["1 job cancelled."]
    assert Job.objects.using("other").get().reason == "cancelled"
    answer = post(client, "retry_selected", elsewhere, address=f"{JOBS}?backend=other")
    assert told(answer) == ["1 job retried."]
    assert run_jobs("other") == 1


def test_the_button_of_a_page_acts_in_the_database_of_its_job():
    elsewhere = UUID(tasks.add_elsewhere.enqueue(1, b=2).id)
    client = somebody(LOOK, CANCEL)
    shown = page(client, f"{JOBS}{elsewhere}/change/")
    (address,) = re.findall(r'<form method="post" action="([^"]+)">', shown)

    assert told(post(client, "cancel_selected", elsewhere, address=address)) == ["1 job cancelled."]
    assert Job.objects.using("other").get().reason == "cancelled"


def test_a_backend_that_there_is_not_is_none():
    here = store()

    assert listed(page(somebody(LOOK, CANCEL), backend="nobody")) == []
    assert row(here).status == "READY"


def test_jobs_of_a_backend_that_left_the_settings_are_shown_and_left_alone():
    job = store(backend="gone")
    client = somebody(LOOK, CANCEL)

    assert listed(page(client)) == [job]
    assert buttons(page(client, f"{JOBS}{job}/change/")) == []


# Workers.


def test_workers_are_told_by_where_they_stand():
    alive, lapsed = a_worker("ann"), a_worker("bob", lease=timedelta(seconds=-1))
    a_worker("cid")
    Worker.objects.filter(name="cid").update(lost_at="2026-01-01T00:00:00Z")
    store()
    claim(alive)
    client = somebody("view_worker")

    for state, name in (("alive", "ann"), ("lapsed", "bob"), ("lost", "cid")):
        shown = page(client, WORKERS, state=state)
        assert re.findall(r"once-state once-(\w+)", shown) == [state]
        assert f">{name}</a>" in shown
    assert "1/1" in page(client, WORKERS, state="alive")
    assert "over for" in page(client, WORKERS, state="lapsed")
    assert "bob" in page(client, f"{WORKERS}{lapsed.id}/change/")


def test_workers_are_found_where_their_backend_is():
    Worker.objects.using("other").create(id=uuid4(), name="far", backend="other")
    a_worker("near")
    client = somebody("view_worker")

    assert "far" not in page(client, WORKERS)
    assert "far" in page(client, WORKERS, backend="other")


def test_the_model_and_its_migration_name_the_permissions():
    names = {
        permission.codename
        for permission in Permission.objects.filter(content_type__app_label="once")
    }

    assert {RETRY, CANCEL, PAYLOAD} <= names
