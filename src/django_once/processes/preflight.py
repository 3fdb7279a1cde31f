"""What must be true before a worker starts: a database that answers, with our tables in it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import django
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from django_once import __version__
from django_once.backend import DatabaseBackend
from django_once.processes.persistence import Persistence
from django_once.processes.plan import Plan
from django_once.wakeups.listen import Listener


def passed(
    plan: Plan, backend: DatabaseBackend, persistence: Persistence, gave_up: Callable[[], bool]
) -> bool:
    """Wait until the tables are there; say what is missing; False when they do not come."""
    database = backend.settings.database
    until = time.monotonic() + plan.patience
    said = ""
    while not gave_up():
        answered, missing = persistence.tried(lambda: unapplied(database))
        if answered and not missing:
            return True
        if answered and missing != said:
            said = missing or ""
            print(f"Waiting up to {plan.patience:g} s: {said}", flush=True)
        if answered and time.monotonic() > until:
            print(f"Gave up: {said}", flush=True)
            return False
        time.sleep(max(min(0.5, plan.patience), persistence.pause))
    return False


def unapplied(database: str) -> str:
    """Return a sentence about migrations of this app that are not applied, or nothing."""
    connection = connections[database]
    executor = MigrationExecutor(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == "once"]
    plan = executor.migration_plan(targets)
    if not plan:
        return ""
    option = "" if database == "default" else f" --database {database}"
    migrations = "1 migration" if len(plan) == 1 else f"{len(plan)} migrations"
    return (
        f"database {database!r} lacks {migrations} of django_once. "
        f"Run: python manage.py migrate{option}"
    )


def first_line(plan: Plan, backend: DatabaseBackend, listener: Listener) -> str:
    """Return what a person wants to know of a worker that has just started."""
    connection: Any = connections[backend.settings.database]
    wakeup = "LISTEN/NOTIFY" if listener.is_open else f"polling every {_poll(plan, backend):g} s"
    if listener.is_swallowed:
        wakeup += ", since a pooler in transaction mode swallows LISTEN"
    queues = ", ".join(plan.queues)
    if plan.excluded:
        queues += f" without {', '.join(plan.excluded)}"
    return (
        f"django-once {__version__} · Django {django.get_version()} · "
        f"Python {platform.python_version()} · {_database(connection)} · wakeup: {wakeup} · "
        f"queues: {queues} · {plan.processes} × {plan.concurrency} at once · worker {plan.name}"
    )


def _poll(plan: Plan, backend: DatabaseBackend) -> float:
    poll = backend.settings.poll.total_seconds()
    return poll if plan.interval is None else plan.interval


def _database(connection: Any) -> str:
    version = connection.get_database_version()
    name = "MariaDB" if getattr(connection, "mysql_is_mariadb", False) else connection.display_name
    return f"{name} {'.'.join(str(part) for part in version)}"
