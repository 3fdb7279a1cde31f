"""The pages of schedules: what is refused beside its field, what an edit does, who may do what."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from django_once.models import Schedule, TaskExecution
from tests.schedules.rows import ADD, a_schedule, again, jobs, moments, records

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

WORDS = {
    "name": "mine", "task": ADD, "cron": "0 2 * * *", "every": "", "timezone": "Europe/Paris",
    "starts_at_0": "", "starts_at_1": "", "ends_at_0": "", "ends_at_1": "", "jitter": "",
    "gap": "", "fold": "", "args": "[1]", "kwargs": "{}", "queue": "default", "priority": "0",
    "backend": "default", "overlap": "skip", "misfire": "coalesce", "catch_up": "", "expect": "",
    "retention": "24h",
}  # fmt: skip


@pytest.fixture
def boss(client):
    client.force_login(User.objects.create_superuser("boss"))
    return client


def add(client, **said):
    return client.post(reverse("admin:once_schedule_add"), {**WORDS, **said})


def refusals(answer):
    return str(answer.context["adminform"].form.errors)


def test_a_schedule_is_added_and_planned(boss):
    answer = add(boss, retention="7d", jitter="90s")

    assert answer.status_code == 302
    row = Schedule.objects.get()
    assert (row.source, row.cron, row.timezone) == ("database", "0 2 * * *", "Europe/Paris")
    assert (row.retention, row.jitter) == (7 * 86400.0, 90.0)
    assert row.next_due_at is not None


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"cron": "0 0 31 2 *"}, "0 0 31 2"),
        ({"cron": "", "every": "0"}, "at least one second"),
        ({"cron": "", "every": "-5"}, "every must be"),
        ({"every": "5m"}, "either cron="),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"task": "tests.gone"}, "is not known to this process"),
        ({"args": "["}, "args"),
        ({"args": "{}"}, "written as JSON"),
        ({"args": "[1, 2, 3]"}, "too many positional arguments"),
        ({"kwargs": '{"c": 1}'}, "unexpected keyword argument"),
        ({"queue": "nowhere"}, "nowhere"),
        ({"backend": "gone"}, "gone"),
        ({"priority": "700"}, "priority"),
        ({"catch_up": "soon"}, "catch up must be"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_the_form(boss, said, sentence):
    answer = add(boss, **said)

    assert answer.status_code == 200
    assert sentence in refusals(answer) or sentence in refusals(answer).replace("&#x27;", "'")
    assert not Schedule.objects.exists()


def test_a_name_twice_is_refused(boss):
    a_schedule("mine")

    assert "already exists" in refusals(add(boss))


def test_an_edit_fires_what_was_due_and_moves_the_next_moment_at_once(boss):
    row = a_schedule("mine", due=-5, cron="* * * * *", args="[1]", timezone="Europe/Paris")
    page = reverse("admin:once_schedule_change", args=[row.pk])

    answer = boss.post(page, {**WORDS, "cron": "0 3 1 1 *"})

    assert answer.status_code == 302
    assert again(row).next_due_at.month in (1, 12)
    assert moments(row)[0] == row.next_due_at
    assert jobs() == [[1]]


def test_a_schedule_of_code_is_shown_and_not_edited_or_deleted(boss):
    row = a_schedule("coded", source="code")
    page = reverse("admin:once_schedule_change", args=[row.pk])

    shown = boss.get(page)
    boss.post(page, {**WORDS, "cron": "0 3 * * *"})

    assert shown.status_code == 200
    assert "coded" in shown.content.decode()
    assert again(row).cron == row.cron
    assert boss.post(reverse("admin:once_schedule_delete", args=[row.pk])).status_code == 403


def steer(client, action, *rows):
    return client.post(
        reverse("admin:once_schedule_changelist"),
        {"action": action, "_selected_action": [str(row.pk) for row in rows]},
        follow=True,
    )


def test_schedules_are_disabled_enabled_and_run_by_hand(boss):
    row = a_schedule(due=50)

    steer(boss, "disable", row)
    assert not again(row).enabled
    steer(boss, "enable", row)
    assert again(row).enabled
    steer(boss, "run_now", row)

    assert TaskExecution.objects.get().kind == "manual"
    assert jobs() == [[1, 2]]


def test_what_cannot_run_is_told(boss):
    row = a_schedule(due=50, args="[]")

    answer = steer(boss, "run_now", row)

    assert "missing a required argument" in answer.content.decode()
    assert records(row) == []


def test_who_may_only_look_steers_nothing(client):
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_schedule"))
    client.force_login(viewer)
    row = a_schedule(due=50)

    for action in ("disable", "run_now"):
        steer(client, action, row)

    assert again(row).enabled
    assert jobs() == []
    assert add(client).status_code == 403


def test_records_are_shown_and_never_edited(boss):
    row = a_schedule(due=50)
    record = TaskExecution.objects.create(schedule=row, due_at=row.next_due_at)

    listed = boss.get(reverse("admin:once_taskexecution_changelist"))
    shown = boss.get(reverse("admin:once_taskexecution_change", args=[record.pk]))

    assert (listed.status_code, shown.status_code) == (200, 200)
    assert boss.get(reverse("admin:once_taskexecution_add")).status_code == 403
