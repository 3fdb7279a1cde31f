"""The admin's pages of locks."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from django_once.errors import LockLost
from django_once.locks import lock
from django_once.models import Lock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]
LIST = "admin:once_lock_changelist"


@pytest.fixture
def person(client):
    user = User.objects.create_user("ann", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_lock"))
    client.force_login(user)
    return user


def release(client, *names):
    return client.post(
        reverse(LIST), {"action": "release_selected", "_selected_action": names}, follow=True
    )


def test_the_list_shows_who_holds_what(client, person):
    with lock("export") as held:
        page = client.get(reverse(LIST)).content.decode()

    assert "export" in page
    assert held.holder in page


def test_a_lock_shows_its_last_holders(client, person):
    with lock("export") as held:
        pass

    page = client.get(reverse("admin:once_lock_change", args=["export"])).content.decode()

    assert held.holder in page
    assert "released" in page


def test_a_person_with_the_permission_takes_a_lock_away(client, person):
    person.user_permissions.add(Permission.objects.get(codename="release_lock"))
    held = lock("export", lease="1h").acquire()

    page = release(client, "export").content.decode()

    assert "Took 1 lock" in page
    assert Lock.objects.get().released_by == "ann (admin)"
    with pytest.raises(LockLost):
        held.release()


def test_without_the_permission_nothing_is_taken_away(client, person):
    with lock("export") as held:
        release(client, "export")
        held.check()

    assert Lock.objects.get().reason == ""
