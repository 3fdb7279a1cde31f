"""A database that is made and dropped again, on the server where the jobs are."""

from __future__ import annotations

from typing import Any


def create(connection: Any, name: str) -> None:
    """Make an empty database; the name is one of ours, of letters and digits."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {connection.ops.quote_name(name)}")


def drop(connection: Any, name: str) -> None:
    """Drop a database, whoever is still connected to it."""
    force = " WITH (FORCE)" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {connection.ops.quote_name(name)}{force}")
