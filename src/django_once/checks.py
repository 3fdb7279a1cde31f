"""Every finding of `manage.py check`: an id, what is wrong and where, and what to do about it.

Three doors lead here. Django asks each backend for what its settings say (`check_backend`), no
database being touched; it asks once for what concerns several of them (`check_project`); and where
databases were named, as `migrate` and `check --database default` do, it asks those
(`check_databases`). A broken setting is a finding, never a traceback.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import django
from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections, router
from django.db.migrations.recorder import MigrationRecorder

from django_once import compat, migrations
from django_once.backend import DatabaseBackend
from django_once.sql import KINDS, facts, functions
from django_once.task_checks import of_tasks

OLDEST: Final = {
    "postgresql": ("PostgreSQL", (14,)),
    "sqlite": ("SQLite", (3, 35)),
    "mysql": ("MySQL", (8, 0, 13)),
    "mariadb": ("MariaDB", (10, 6)),
}
# On PostgreSQL the first of these is the second.
LEVELS: Final = {1: "read committed", 2: "read committed", 3: "repeatable read", 4: "serializable"}
READ_COMMITTED: Final = "read committed"
# A quotation mark is written as four characters when it travels within a batch, within SQL.
GROWTH: Final = 4
IDS: Final = {"option": "once.E002", "value": "once.E003", "name": "once.E007", "key": "once.W001"}


def check_backend(backend: DatabaseBackend) -> list[CheckMessage]:
    """Return what the settings of one backend and of its database say, asking no database."""
    return [*_app(), *_settings(backend), *_database(backend)]


@checks.register("once")
def check_project(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Return what no single backend can see: tasks, and backends that contradict each other."""
    return [*_backport(), *of_tasks(_keepers()), *_leases(ours())]


@checks.register(checks.Tags.database)
def check_databases(
    app_configs: Any = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Return what the named databases say of themselves, as far as jobs live in them."""
    named = {backend.settings.database for backend in ours()}
    return [
        finding for database in sorted(named & set(databases or ())) for finding in _asked(database)
    ]


def ours() -> list[DatabaseBackend]:
    """Return the backends of the settings that keep their jobs in a database."""
    found = []
    for alias in compat.task_backends:
        # Django's own check says it of those whose class cannot be loaded.
        with suppress(compat.InvalidTaskBackend):
            backend = compat.task_backends[alias]
            if isinstance(backend, DatabaseBackend):
                found.append(backend)
    return found


def _keepers() -> dict[str, str]:
    """Return the database of each of these backends, by its alias."""
    return {backend.alias: backend.settings.database for backend in ours()}


def _app() -> Iterator[CheckMessage]:
    if not apps.is_installed("django_once"):
        yield Error(
            "TASKS names django_once, which is not among INSTALLED_APPS.",
            hint="Add 'django_once' to INSTALLED_APPS, then run: python manage.py migrate",
            id="once.E001",
        )


def _backport() -> Iterator[CheckMessage]:
    if django.VERSION < (6, 0) and not apps.is_installed("django_tasks"):
        yield Caution(
            "Django asks no backend for its checks: django_tasks is not among INSTALLED_APPS.",
            hint="Add 'django_tasks' to INSTALLED_APPS; from Django 6.0 on it is not needed.",
            id="once.W011",
        )
        for backend in ours():
            yield from check_backend(backend)


def _settings(backend: DatabaseBackend) -> Iterator[CheckMessage]:
    for problem in backend.problems:
        kind = Caution if problem.kind == "key" else Error
        yield kind(problem.sentence, hint=problem.remedy, id=IDS[problem.kind])


def _database(backend: DatabaseBackend) -> Iterator[CheckMessage]:
    database = backend.settings.database
    place = f"TASKS[{backend.alias!r}]['OPTIONS']['DATABASE']"
    if database not in connections:
        yield Error(
            f"{place} is {database!r}, which is not among DATABASES.",
            hint=f"There are: {', '.join(sorted(connections))}.",
            id="once.E004",
        )
        return
    connection: Any = connections[database]
    if connection.vendor not in KINDS:
        yield Error(
            f"{place} is {database!r}, a database of the kind {connection.vendor!r}.",
            hint="Jobs live in PostgreSQL, SQLite, MySQL or MariaDB: name one of these.",
            id="once.E005",
        )
        return
    if database != "default":
        yield Caution(
            f"{place} is {database!r}: a job joins transactions of that database only.",
            hint="Code that writes to 'default' enqueues even if it rolls back. If that is meant, "
            "add 'once.W002' to SILENCED_SYSTEM_CHECKS.",
            id="once.W002",
        )
    yield from _routed(database, place)
    yield from _requests(connection)
    mirrored = connection.settings_dict["TEST"].get("MIRROR")
    if mirrored:
        yield Error(
            f"{place} is {database!r}, a replica of {mirrored!r} by its TEST settings: nothing can "
            "be enqueued there.",
            hint=f"Set it to {mirrored!r}.",
            id="once.E010",
        )
    if connection.vendor == "sqlite":
        yield from _sqlite(connection)
    else:
        yield from _isolation(database, _isolation_said(connection))


def _routed(database: str, place: str) -> Iterator[CheckMessage]:
    from django_once.models import Job  # noqa: PLC0415 - this file is loaded without the app too

    if apps.is_installed("django_once") and not router.allow_migrate_model(database, Job):
        yield Error(
            f"{place} is {database!r}, where DATABASE_ROUTERS allow no tables of django_once.",
            hint=f"Let allow_migrate({database!r}, 'once') return True.",
            id="once.E009",
        )


def _requests(connection: Any) -> Iterator[CheckMessage]:
    alias = connection.alias
    if connection.settings_dict.get("ATOMIC_REQUESTS"):
        yield Caution(
            f"Views hold a transaction of database {alias!r} open, by its ATOMIC_REQUESTS: a lock "
            "that a view takes is given back before what the view wrote is committed, so the next "
            "holder does not see it; SQLite refuses the lock.",
            hint="Decorate views that take locks with transaction.non_atomic_requests, or leave "
            "ATOMIC_REQUESTS out. If no view takes one, add 'once.W015' to SILENCED_SYSTEM_CHECKS.",
            id="once.W015",
        )


def _sqlite(connection: Any) -> Iterator[CheckMessage]:
    options, alias = connection.settings_dict["OPTIONS"], connection.alias
    yield from _age(connection)
    if str(options.get("transaction_mode") or "").upper() != "IMMEDIATE":
        yield Caution(
            f"SQLite database {alias!r} begins transactions without taking the right to write, so "
            "one that reads before it enqueues fails as soon as another process writes.",
            hint=f"Set DATABASES[{alias!r}]['OPTIONS']['transaction_mode'] to 'IMMEDIATE'.",
            id="once.W003",
        )
    if _is_in_memory(connection):
        yield Caution(
            f"SQLite database {alias!r} is in memory, where no worker can see it.",
            hint=f"Name a file in DATABASES[{alias!r}]['NAME'].",
            id="once.W005",
        )


def _is_in_memory(connection: Any) -> bool:
    # Django names the databases it makes for tests so; there run_jobs is the worker.
    name = str(connection.settings_dict["NAME"])
    return connection.is_in_memory_db() and not name.startswith("file:memorydb_")


def _isolation_said(connection: Any) -> str:
    """Return the level that the settings name; READ COMMITTED where they leave it to the server,
    which is asked when databases are."""
    said: Any = connection.settings_dict["OPTIONS"].get("isolation_level") or READ_COMMITTED
    return str(LEVELS.get(said, said)).lower()


def _isolation(database: str, level: str) -> Iterator[CheckMessage]:
    if level != READ_COMMITTED:
        yield Caution(
            f"Transactions of database {database!r} run at {level.upper()}: workers that meet at "
            "one job get errors, and wait for each other, where they should pass by.",
            hint=f"Leave out DATABASES[{database!r}]['OPTIONS']['isolation_level'] and the "
            "server's own default, or give the jobs an alias of their own that has none.",
            id="once.W006",
        )


def _age(connection: Any) -> Iterator[CheckMessage]:
    is_mariadb = connection.vendor == "mysql" and connection.mysql_is_mariadb
    name, oldest = OLDEST["mariadb" if is_mariadb else connection.vendor]
    version = connection.get_database_version()
    if version < oldest:
        yield Error(
            f"Database {connection.alias!r} is {name} {_dotted(version)}, which lacks statements "
            "that jobs need.",
            hint=f"Use {name} {_dotted(oldest)} or later.",
            id="once.E006",
        )


def _dotted(version: Iterable[int]) -> str:
    return ".".join(str(part) for part in version)


def _leases(backends: list[DatabaseBackend]) -> Iterator[CheckMessage]:
    first: dict[str, DatabaseBackend] = {}
    for backend in backends:
        other = first.setdefault(backend.settings.database, backend)
        if other.settings.lease != backend.settings.lease:
            yield Caution(
                f"TASKS[{other.alias!r}] and TASKS[{backend.alias!r}] keep jobs in one database "
                "under leases of different length, and each declares the other's workers lost.",
                hint="Give both the same OPTIONS['LEASE'], the longer one.",
                id="once.W007",
            )


def _asked(database: str) -> list[CheckMessage]:
    """Return what one database says of itself; that it does not answer is a finding too."""
    if database not in connections or connections[database].vendor not in KINDS:
        return []
    found: list[CheckMessage] = []
    try:
        for finding in _answers(connections[database]):
            found.append(finding)
    except (DatabaseError, InterfaceError, ImproperlyConfigured) as error:
        unanswered = Caution(
            f"Database {database!r}, where jobs live, could not be asked: {str(error).strip()}",
            hint=f"See whether it runs, and what DATABASES[{database!r}] says.",
            id="once.W012",
        )
        return [*found, unanswered]
    return found


def _answers(connection: Any) -> Iterator[CheckMessage]:
    if connection.vendor == "sqlite":
        yield from _journal(connection)
    else:
        yield from _age(connection)
        # What the settings say stands among the findings of the backend already.
        if _isolation_said(connection) == READ_COMMITTED:
            yield from _isolation(connection.alias, facts.isolation(connection))
    if connection.vendor == "mysql":
        yield from _letters(connection)
        yield from _packets(connection)
    yield from _unapplied(connection)
    if connection.vendor == "postgresql":
        yield from _functions(connection)


def _journal(connection: Any) -> Iterator[CheckMessage]:
    mode = facts.journal_mode(connection)
    if mode not in ("wal", "memory"):
        yield Caution(
            f"SQLite database {connection.alias!r} keeps its journal in the mode {mode!r}: whoever "
            "writes keeps all others from reading.",
            hint=f"Set DATABASES[{connection.alias!r}]['OPTIONS']['init_command'] to "
            "'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'.",
            id="once.W004",
        )


def _letters(connection: Any) -> Iterator[CheckMessage]:
    columns = facts.narrow_columns(connection)
    if columns:
        yield Caution(
            f"Database {connection.alias!r} cannot keep every letter (emoji, for one) in "
            f"{', '.join(columns)}.",
            hint="Convert these columns to the character set utf8mb4; where nothing is stored yet: "
            "migrate once to zero, ALTER DATABASE … CHARACTER SET utf8mb4, and migrate again.",
            id="once.W009",
        )


def _packets(connection: Any) -> Iterator[CheckMessage]:
    packet = facts.longest_packet(connection)
    for backend in ours():
        said = backend.settings
        longest = max(said.max_arguments, said.max_result)
        if said.database == connection.alias and longest * GROWTH > packet:
            yield Caution(
                f"TASKS[{backend.alias!r}] lets a job hold {longest:,} bytes. Quoted on their way, "
                f"they may be more than a packet of database {connection.alias!r} ({packet:,} "
                "bytes), which ends the connection instead of keeping them.",
                hint="Raise max_allowed_packet of the server, or lower OPTIONS['MAX_ARGUMENTS'] "
                "and OPTIONS['MAX_RESULT'].",
                id="once.W014",
            )


def _functions(connection: Any) -> Iterator[CheckMessage]:
    # Where it is missing, so is the migration, which has a finding of its own.
    if functions.is_there(connection) and not functions.is_current(connection):
        yield Caution(
            f"once_enqueue in database {connection.alias!r} is that of another release.",
            hint=f"Run: python manage.py migrate once --database {connection.alias}",
            id="once.W018",
        )


def _unapplied(connection: Any) -> Iterator[CheckMessage]:
    recorder = MigrationRecorder(connection)
    if "once" in settings.MIGRATION_MODULES or not apps.is_installed("django_once"):
        return
    # `migrate` comes here first: of a database that is still empty there is nothing to say.
    if not recorder.has_table():
        return
    written = {module.name for module in pkgutil.iter_modules(migrations.__path__)}
    applied = {name for app, name in recorder.applied_migrations() if app == "once"}
    missing = sorted(written - applied)
    if missing:
        yield Caution(
            f"Database {connection.alias!r} lacks migrations of django_once: {', '.join(missing)}.",
            hint=f"Run: python manage.py migrate once --database {connection.alias}",
            id="once.W010",
        )
