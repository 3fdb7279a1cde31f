"""The conductor's eyes on PostgreSQL: psycopg, and nothing of Django or of the package."""

from __future__ import annotations

from typing import Any

import psycopg


class PostgreSQLBooks:
    """A connection that reads, in autocommit."""

    def __init__(self, address: str) -> None:
        self._line = psycopg.connect(address, autocommit=True)
        self._line.execute("SET default_transaction_read_only = on")
        major, minor = divmod(self._line.info.server_version, 10_000)
        self.version = f"{major}.{minor}"

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        return self._line.execute(question).fetchall()

    def is_sound(self) -> bool:
        # What a crash of its clients leaves is nothing: the server itself was not killed.
        return True

    def close(self) -> None:
        self._line.close()
