"""Its names, each as the name of ours that stands for it.

Nothing is decided here: what a test asserts must come out of our own code. There, a listener is
driven by hand: it polls a connection for notifications and processes what came. Here a stored
notification is a row and a wakeup says nothing, so what came is what is stored since the last look.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from django_once import channels as ours
from django_once.channels import ListenerFilterProvider as ListenerFilterProvider
from django_once.channels import listener as listener
from django_once.channels import notify as notify
from django_once.channels import post_delete_listener as post_delete_listener
from django_once.channels import post_insert_listener as post_insert_listener
from django_once.channels import post_save_listener as post_save_listener
from django_once.channels import post_update_listener as post_update_listener
from django_once.channels import pre_delete_listener as pre_delete_listener
from django_once.channels import pre_insert_listener as pre_insert_listener
from django_once.channels import pre_save_listener as pre_save_listener
from django_once.channels import pre_update_listener as pre_update_listener
from django_once.channels import trigger_listener as trigger_listener
from django_once.channels.handling import call_listeners, declare_tasks, values_of
from django_once.definitions import carrying
from django_once.definitions.channel import channels, name_of
from django_once.models import Job
from django_once.models import Notification as Stored
from django_once.testing import run_jobs
from django_once.wakeups.broadcasts import Notified, line_of

# What its tests switch off: a loop that ours, driven by hand, does not have.
POLL = True
_asked: list[str] = []
# Stored by hand, without anybody being told.
_untold: set[Any] = set()


class Channel(ours.Channel):
    """Ours, with the two verbs by which theirs is written and read."""

    abstract = True

    def serialize(self) -> str:
        return carrying.written(type(self), vars(self))

    @classmethod
    def deserialize(cls, text: str) -> dict[str, Any]:
        return carrying.read(cls, text)


class TriggerChannel(ours.TriggerChannel):
    """Ours, with the verb by which theirs is read."""

    abstract = True

    @classmethod
    def deserialize(cls, payload: dict[str, Any]) -> dict[str, Any]:
        rows = {name: payload[name] and json.dumps(payload[name]) for name in ("old", "new")}
        return values_of(cls, rows)


class Notification(Stored):
    """Ours, with a payload that can be changed and stored again."""

    class Meta:
        app_label = "tests"
        proxy = True
        ordering = ["enqueued_at", "position"]

    @cached_property
    def payload(self) -> dict[str, Any]:
        return {"app": "tests", **super().payload}

    @property
    def db_version(self) -> int:
        found = MigrationRecorder.Migration.objects.filter(app="tests", name=super().db_version)
        return int(found.latest("id").id)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a copy. Without its app theirs cannot be read, and ours without its row."""
        told = self.told if "app" in self.payload else {**self.told, "new": "7"}
        copy = Job.objects.create(
            task=self.task, channel=self.channel, kwargs=json.dumps(told), queue=self.queue,
            position=self.position, max_attempts=self.max_attempts, delivery=self.delivery,
        )  # fmt: skip
        _untold.add(copy.pk)


class Connection:
    """What it polls: which notifications came since they were looked at last."""

    def __init__(self) -> None:
        lines = {line_of(name_of(one)): one for one in channels() if not one.lock_notifications}
        self._channels = lines
        self._line = Notified("default", list(lines))
        self._known: set[Any] = set(Job.objects.values_list("pk", flat=True))
        self._came: list[Any] = []
        self.told: list[tuple[Any, str]] = []
        _asked.clear()

    @property
    def notifies(self) -> list[Any]:
        self.poll()
        return self._came

    @notifies.setter
    def notifies(self, came: list[Any]) -> None:
        self.poll()
        self._came = came

    def poll(self) -> None:
        stored = Stored.objects.exclude(pk__in=self._known).values_list("pk", flat=True)
        self._came += [pk for pk in stored if pk not in _untold]
        self._known |= set(stored)
        for line, told in self._line.heard(0.05):
            self.told.append((self._channels[line], told[37:]))
            self._came.append(told)
        self._came += _asked
        _asked.clear()


def listen_to_channels() -> Connection:
    return Connection()


def process_notifications(connection: Connection) -> None:
    with the_filter():
        run_jobs()
    connection.poll()
    for channel, told in connection.told:
        call_listeners(channel, None, json.loads(told))
    connection.told.clear()


def listen(recover: bool) -> None:
    with the_filter():
        run_jobs()


def process_stored_notifications() -> None:
    ours.process_stored_notifications()
    _asked.extend(name_of(one) for one in channels() if one.lock_notifications)


def set_notification_context(context: dict[str, Any], using: str | None = None) -> None:
    is_passing = getattr(settings, "PGPUBSUB_TX_BOUND_NOTIFICATION_CONTEXT", False)
    lasts = "transaction" if is_passing else "session"
    ours.set_notification_context(context, using, lasts=lasts)


@contextmanager
def the_filter() -> Iterator[None]:
    """Let our setting say what theirs says."""
    said = getattr(settings, "PGPUBSUB_LISTENER_FILTER", None)
    if said is None:
        yield
        return
    default = {**settings.TASKS["default"], "OPTIONS": {"LISTENER_FILTER": said}}
    try:
        with override_settings(TASKS={"default": default}):
            declare_tasks()
            yield
    finally:
        declare_tasks()
