"""The statements of the protocol: one class per database, one conformance suite for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

from django_once.errors import UnsupportedDatabase
from django_once.sql.mysql import MySQL
from django_once.sql.postgresql import PostgreSQL
from django_once.sql.sqlite import SQLite
from django_once.sql.statements import Statements

KINDS: dict[str, type[Statements]] = {kind.vendor: kind for kind in (PostgreSQL, SQLite, MySQL)}


def on(alias: str) -> Statements:
    """Return the statements of this thread's connection to a database."""
    connection: Any = connections[alias]
    kind = KINDS.get(connection.vendor)
    if kind is None:
        raise UnsupportedDatabase(
            f"Database {alias!r} is {connection.vendor}: jobs live in PostgreSQL, SQLite, MySQL or "
            "MariaDB. Name one of these in OPTIONS['DATABASE']."
        )
    return kind(connection)


@contextmanager
def transaction_on(alias: str) -> Iterator[None]:
    """Begin a transaction of the engine's own, or a savepoint of the caller's.

    Ours sees what others commit meanwhile, whatever level the project asks of its own: who meets
    another at a row shall see what became of it, not an error.
    """
    connection: Any = connections[alias]
    is_own = not connection.in_atomic_block and connection.get_autocommit()
    with transaction.atomic(using=alias):
        if is_own:
            on(alias).see_what_commits()
        yield
