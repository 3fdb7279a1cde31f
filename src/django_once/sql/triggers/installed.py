"""Installing triggers: what a database has becomes what the channels say, and nothing else changes.

Each is compared as the database keeps it, so a `migrate` that changes nothing takes no lock of any
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from django.db import connections, transaction

from django_once.sql.triggers import mysql, postgresql, sqlite
from django_once.sql.triggers.values import Column, Installed, Trigger, said

KINDS: Final[dict[str, ModuleType]] = {"postgresql": postgresql, "sqlite": sqlite, "mysql": mysql}
JOBS: Final = "once_job"


@dataclass(frozen=True, slots=True)
class Drift:
    """How the triggers of a database differ from what the channels say."""

    missing: tuple[Trigger, ...]
    changed: tuple[Trigger, ...]
    disabled: tuple[Trigger, ...]
    left_over: tuple[Installed, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.disabled or self.left_over)


def drift(database: str, wanted: Sequence[Trigger]) -> Drift:
    """Return how the triggers that are there differ from these."""
    connection = connections[database]
    kind = KINDS[connection.vendor]
    there = {one.name: one for one in kind.installed(connection)}
    missing, changed, disabled = [], [], []
    for trigger in wanted:
        found = there.pop(trigger.name, None)
        if found is None or not found.table:
            missing.append(trigger)
        elif _differs(found, trigger, kind.source(connection, trigger)):
            changed.append(trigger)
        elif not found.is_enabled:
            disabled.append(trigger)
    return Drift(tuple(missing), tuple(changed), tuple(disabled), tuple(there.values()))


def install(database: str, wanted: Sequence[Trigger]) -> Drift:
    """Let a database have these triggers of ours and no others; return what was otherwise."""
    connection = connections[database]
    kind = KINDS[connection.vendor]
    found = drift(database, wanted)
    if not found:
        return found
    whole = transaction.atomic(using=database)
    # MySQL commits before each of these.
    with whole if connection.features.can_rollback_ddl else nullcontext():
        for one in found.left_over:
            _run(connection, kind.removing(connection, one))
        for trigger in found.changed:
            # It may stand at another table, which was renamed.
            _run(connection, kind.removing(connection, Installed(trigger.name, "", "")))
        for trigger in (*found.missing, *found.changed, *found.disabled):
            _run(connection, kind.installing(connection, trigger))
    return found


def remove(database: str, tables: Iterable[str] | None = None) -> list[Installed]:
    """Take the triggers of these tables away, or all of ours; return which."""
    connection = connections[database]
    kind = KINDS[connection.vendor]
    named = None if tables is None else {bare(table).lower() for table in tables}
    there = kind.installed(connection)
    gone = [one for one in there if named is None or one.table.lower() in named]
    for one in gone:
        _run(connection, kind.removing(connection, one))
    return gone


def has_jobs(database: str) -> bool:
    """Return whether the table of jobs is there, with what triggers write into."""
    connection = connections[database]
    with connection.cursor() as cursor:
        if JOBS not in connection.introspection.table_names(cursor):
            return False
        return "order_key" in _names(connection, cursor, JOBS)


def tables(database: str) -> set[str]:
    """Return the tables that are there."""
    connection = connections[database]
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor))


def columns(database: str, table: str, kinds: dict[str, str]) -> tuple[Column, ...]:
    """Return those columns of a table that are there and that its trigger must name."""
    connection = connections[database]
    if connection.vendor == "postgresql":
        return ()
    with connection.cursor() as cursor:
        there = _names(connection, cursor, table)
    return tuple(Column(name=name, kind=kinds[name]) for name in there if name in kinds)


def bare(table: str) -> str:
    """Return a table's name without the schema that some put in front, quoted."""
    return table.rpartition('"."')[2].rstrip('"') if '"."' in table else table.strip('"`')


def _names(connection: Any, cursor: Any, table: str) -> list[str]:
    found = connection.introspection.get_table_description(cursor, table)
    return [column.name for column in found]


def _differs(found: Installed, trigger: Trigger, source: str) -> bool:
    """Return whether a trigger stands at another table, or does something else."""
    is_elsewhere = found.table.lower() != bare(trigger.table).lower()
    return is_elsewhere or said(found.source) != said(source)


def _run(connection: Any, statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            # Without parameters a percent sign is nothing but a percent sign.
            cursor.execute(statement, None)
