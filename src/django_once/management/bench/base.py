"""A database of the bench's own, on the user's server: made, pointed at, and dropped.

What is there already is never filled. Where a database cannot be made, nothing is measured.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError, connections
from django.db.migrations.executor import MigrationExecutor

from django_once.management.places import PROBLEM
from django_once.sql import bases

PREFIX: Final = "once_bench_"


@contextmanager
def database_of_its_own(alias: str) -> Iterator[str]:
    """Let an alias of DATABASES lead to a new and empty database; to its own again afterwards."""
    if connections[alias].vendor == "sqlite":
        with _a_file(alias) as name:
            yield name
        return
    name = PREFIX + secrets.token_hex(4)
    _create(alias, name)
    before = connections.settings[alias]["NAME"]
    _lead(alias, name)
    try:
        _migrate(alias)
        yield name
    finally:
        _lead(alias, before)
        bases.drop(connections[alias], name)


@contextmanager
def _a_file(alias: str) -> Iterator[str]:
    """Let it lead to a file beside the user's, so that it is the same disk."""
    before = connections.settings[alias]["NAME"]
    beside = Path(str(before)).parent if Path(str(before)).is_file() else None
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=beside) as directory:
        _lead(alias, str(Path(directory) / "bench.sqlite3"))
        try:
            _migrate(alias)
            yield directory
        finally:
            _lead(alias, before)


def _create(alias: str, name: str) -> None:
    try:
        bases.create(connections[alias], name)
    except (DatabaseError, InterfaceError) as error:
        raise CommandError(
            "The bench fills no database that it did not make, and none can be made on the server "
            f"of {alias!r}: {str(error).strip()} Let this role create databases, or run it "
            "where one may.",
            returncode=PROBLEM,
        ) from error


def _lead(alias: str, name: Any) -> None:
    """Let every connection that is opened from now on lead to this database."""
    connection: Any = connections[alias]
    connection.close()
    # A pool would go on lending lines to the database before.
    with suppress(AttributeError):
        connection.close_pool()
    connections.settings[alias]["NAME"] = name
    connection.settings_dict["NAME"] = name


def _migrate(alias: str) -> None:
    """Make our tables, and nobody else's; nobody is told of it by a signal."""
    executor = MigrationExecutor(connections[alias])
    executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] == "once"])
