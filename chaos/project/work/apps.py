"""The app of the work; every session it opens says which process it belongs to."""

from __future__ import annotations

import os
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class WorkConfig(AppConfig):
    """Loads the tasks, and lets the history know who changes a row."""

    name = "chaos.project.work"
    label = "chaos"

    def ready(self) -> None:
        connection_created.connect(sign_the_session, dispatch_uid="chaos")


def sign_the_session(connection: Any, **_: Any) -> None:
    """Leave this process's pid where the trigger of the history finds it.

    Through the driver: what Django sends would count as a session that a body has changed.
    """
    raw, pid = connection.connection, os.getpid()
    if connection.vendor == "sqlite":
        raw.create_function("chaos_pid", 0, os.getpid)
        return
    said = (
        f"SET chaos.pid = '{pid}'"
        if connection.vendor == "postgresql"
        else f"SET @chaos_pid = {pid}"
    )
    with raw.cursor() as cursor:
        cursor.execute(said)
