"""What the settings, the tasks and a server's own settings say: the system checks, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.core import checks as django_checks
from django.db import connections

from django_once import checks
from django_once.backend import DatabaseBackend
from django_once.management.doctor.finding import ERROR, OK, WARNING, Finding

# It has a finding of its own, with the number of them.
MIGRATIONS: Final = "once.W010"


def findings(backends: list[DatabaseBackend]) -> Iterator[Finding]:
    """Yield what `manage.py check` says of these backends and of all tasks."""
    if not backends:
        yield Finding(
            "settings", ERROR,
            "No backend in TASKS is 'django_once.backend.DatabaseBackend'.",
            "Name it in TASKS: TASKS = {'default': {'BACKEND': "
            "'django_once.backend.DatabaseBackend'}}",
        )  # fmt: skip
        return
    found = [message for backend in backends for message in checks.check_backend(backend)]
    told = _told([*found, *checks.check_project()])
    yield from told
    if not told:
        named = ", ".join(repr(backend.alias) for backend in backends)
        yield Finding("settings", OK, f"TASKS is in order: {named}")


def of_server(database: str) -> Iterator[Finding]:
    """Yield what a database says of its version, isolation, journal, letters and packets."""
    told = _told(checks.check_databases(databases=[database]))
    yield from told
    if not told:
        connection: Any = connections[database]
        version = ".".join(str(part) for part in connection.get_database_version())
        is_mariadb = getattr(connection, "mysql_is_mariadb", False)
        name = "MariaDB" if is_mariadb else connection.display_name
        yield Finding("server", OK, f"Database {database!r} is {name} {version}, well set up")


def _told(messages: Iterable[django_checks.CheckMessage]) -> list[Finding]:
    """Return messages of Django's checks as findings, without what the project silenced."""
    # A backend and the project may say the same, where Django asks no backend.
    found: dict[tuple[str, str], Finding] = {}
    for one in messages:
        if one.is_silenced() or one.id == MIGRATIONS:
            continue
        level = ERROR if one.level >= django_checks.ERROR else WARNING
        found[str(one.id), one.msg] = Finding(str(one.id), level, one.msg, one.hint or "")
    return list(found.values())
