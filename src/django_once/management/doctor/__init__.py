"""The doctor: looks at settings, servers and work, and says of each what is wrong and what to do.

It changes nothing. What it looks for it finds by asking the living system, not by reading a list of
what should be: a wakeup is sent and heard, a clock is compared, a rule is walked.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, connections

from django_once import checks
from django_once.backend import DatabaseBackend
from django_once.management.doctor import server, settings, work
from django_once.management.doctor.finding import ERROR, Finding
from django_once.processes.preflight import unapplied


def examined(alias: str | None, long: float) -> Iterator[Finding]:
    """Yield what is found of one backend, or of all; a transaction is long from so many seconds."""
    backends = [one for one in checks.ours() if alias in (None, one.alias)]
    yield from settings.findings(backends)
    by_database: dict[str, list[DatabaseBackend]] = {}
    for backend in backends:
        if backend.settings.database in connections:
            by_database.setdefault(backend.settings.database, []).append(backend)
    for database, those in by_database.items():
        yield from _of_database(database, those, long)


def _of_database(database: str, backends: list[DatabaseBackend], long: float) -> Iterator[Finding]:
    try:
        connections[database].ensure_connection()
    except (DatabaseError, InterfaceError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        yield Finding(
            "reachable", ERROR, f"Database {database!r} cannot be reached: {lines[0]}",
            f"See whether it runs, and what DATABASES[{database!r}] says.",
        )  # fmt: skip
        return
    yield from settings.of_server(database)
    missing = unapplied(database)
    if missing:
        sentence, _, remedy = missing.partition(" Run: ")
        yield Finding("migrations", ERROR, f"{sentence[0].upper()}{sentence[1:]}", f"Run: {remedy}")
    yield from server.findings(database, backends, long)
    if not missing:
        yield from work.findings(database, backends)
