"""Where jobs are: the backends that a command means, and the databases behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, OperationalError, connections

from django_once import checks, compat
from django_once.backend import DatabaseBackend
from django_once.processes.preflight import unapplied

OK, PROBLEM, USAGE, UNREACHABLE = range(4)


@dataclass(frozen=True, slots=True)
class Place:
    """One database, and the backends whose jobs are there."""

    database: str
    backends: Sequence[DatabaseBackend]


def add_backend(parser: CommandParser) -> None:
    """Declare the option that names a backend."""
    parser.add_argument(
        "--backend", metavar="ALIAS", help="an alias in TASKS (default: all of ours)"
    )


def backend_named(alias: str) -> DatabaseBackend:
    """Return the backend of this alias, which must be ours and in order."""
    try:
        backend = compat.task_backends[alias]
    except compat.InvalidTaskBackend as error:
        if alias in compat.task_backends.settings:
            raise CommandError(str(error), returncode=USAGE) from error
        raise CommandError(
            f"TASKS has no backend {alias!r}. There are: {', '.join(compat.task_backends)}.",
            returncode=USAGE,
        ) from error
    if not isinstance(backend, DatabaseBackend):
        raise CommandError(
            f"TASKS[{alias!r}] is {type(backend).__module__}.{type(backend).__name__}; this is "
            "about jobs of 'django_once.backend.DatabaseBackend'.",
            returncode=USAGE,
        )
    if backend.database not in connections:
        raise CommandError(
            f"TASKS[{alias!r}]['OPTIONS']['DATABASE'] is {backend.database!r}, which is not among "
            f"DATABASES: {', '.join(connections)}.",
            returncode=USAGE,
        )
    return backend


def places(alias: str | None) -> list[Place]:
    """Return where the jobs of one backend are, or of all of ours, each place connected."""
    aliases = [alias] if alias else [backend.alias for backend in checks.ours()]
    if not aliases:
        raise CommandError(
            "No backend in TASKS is 'django_once.backend.DatabaseBackend': there are no jobs to "
            "look at.",
            returncode=USAGE,
        )
    by_database: dict[str, list[DatabaseBackend]] = {}
    for name in aliases:
        backend = backend_named(name)
        by_database.setdefault(backend.database, []).append(backend)
    for database in by_database:
        _connect(database)
    return [Place(database, backends) for database, backends in by_database.items()]


def explained(error: Exception, alias: str | None) -> Exception:
    """Return what an error of the database means to a person, or the error itself."""
    for backend in checks.ours():
        if alias and backend.alias != alias:
            continue
        try:
            missing = unapplied(backend.database)
        except (DatabaseError, InterfaceError):
            return _unreachable(backend.database, error)
        if missing:
            return CommandError(f"{missing[0].upper()}{missing[1:]}", returncode=USAGE)
    if isinstance(error, (OperationalError, InterfaceError)):
        return CommandError(f"The database gave up: {_first_line(error)}", returncode=UNREACHABLE)
    return error


def _connect(database: str) -> None:
    try:
        connections[database].ensure_connection()
    except (DatabaseError, InterfaceError) as error:
        raise _unreachable(database, error) from error


def _unreachable(database: str, error: Exception) -> CommandError:
    return CommandError(
        f"Database {database!r} cannot be reached: {_first_line(error)}", returncode=UNREACHABLE
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
