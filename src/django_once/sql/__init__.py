"""The statements of the protocol: one class per database, one conformance suite for all."""

from __future__ import annotations

from typing import Any

from django.db import connections

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
