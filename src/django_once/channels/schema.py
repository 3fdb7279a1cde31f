"""Which release a notification is from, and whether this process is to handle it.

A trigger writes down the last migration of its model's app. A worker whose code does not have that
migration is older than the notification: it leaves it to newer workers, as long as the migration
is applied. After the migration was taken back nobody is newer, and whoever comes handles it.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from django_once.channels import rows
from django_once.definitions.channel import BaseChannel, TriggerChannel
from django_once.definitions.ends import Snooze

LEFT_FOR: Final = timedelta(seconds=5)


def applied(database: str) -> dict[str, str]:
    """Return the last migration that was applied of each app."""
    connection = connections[database]
    recorder = MigrationRecorder(connection)
    if not recorder.has_table():
        return {}
    found = recorder.migration_qs.order_by("id").values_list("app", "name")
    return dict(found)


def refuse_newer(channel: type[BaseChannel], written: Any) -> None:
    """Leave a notification to workers whose code has the migration that it was written under."""
    if not written or not issubclass(channel, TriggerChannel):
        return
    label = rows.model_of(channel)._meta.app_label
    if (label, written) in _on_disk():
        return
    database = rows.database_of(channel)
    try:
        is_applied = (label, written) in MigrationRecorder(
            connections[database]
        ).applied_migrations()
    except DatabaseError:
        return
    if is_applied:
        raise Snooze(LEFT_FOR)


@lru_cache(maxsize=1)
def _on_disk() -> frozenset[tuple[str, str]]:
    """Return the migrations that this process's code has, and those they replace."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return frozenset({*loader.disk_migrations, *replaced})
