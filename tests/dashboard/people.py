"""Who looks at the dashboard, and what they see there."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import Permission, User
from django.test import Client

from django_once.models.job.settle import settle
from tests.jobs import a_worker, claim, failure, store_many

HOME = "/admin/once/dashboard/"
LOOK, OPERATE, PAYLOAD = "view_dashboard", "operate", "view_payload"


def somebody(*may: str, checks: bool = False, name: str = "") -> Client:
    """Return the browser of a person of the staff who has these permissions."""
    user = User.objects.create_user(name or f"user-{uuid4()}", is_staff=True)
    found = Permission.objects.filter(content_type__app_label="once", codename__in=may)
    assert len(found) == len(may)
    user.user_permissions.set(found)
    client = Client(enforce_csrf_checks=checks)
    client.force_login(user)
    return client


def page(client: Client, address: str = "", status: int = 200, **said: Any) -> str:
    answer = client.get(HOME + address, said)
    assert answer.status_code == status, answer.status_code
    return answer.content.decode()


def act(client: Client, verb: str, **said: Any) -> str:
    """Send what a form of the dashboard would send; return what the next page tells of it."""
    answer = client.post(f"{HOME}act/{verb}/", said, follow=True)
    assert answer.status_code == 200, answer.status_code
    return told(answer.content.decode())


def told(text: str) -> str:
    """Return the messages on a page."""
    found = re.findall(r'<li class="(?:success|warning|error|info)">(.*?)</li>', text, re.DOTALL)
    return unescape(" ".join(found))


def listed(text: str) -> list[UUID]:
    """Return the ids of the jobs that a page lists, in its order."""
    found = re.findall(r'<th scope="row"><a href="[^"]*/jobs/([0-9a-f-]{36})/', text)
    return [UUID(id) for id in found]


def failed(count: int = 1, **said: Any) -> list[UUID]:
    """Leave so many jobs that failed."""
    jobs = store_many(count, **said)
    settle("default", [failure(one) for one in claim(a_worker(), count) if one.id in jobs])
    return jobs
