"""The conductor's own eyes: the rows as the database shows them, without any code of the package.

Reads only, on a connection of its own, outside every transaction.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Protocol


class Books(Protocol):
    """A connection that reads."""

    version: str

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """Return what the database answers now."""

    def is_sound(self) -> bool:
        """Return whether the database finds its own files whole."""

    def close(self) -> None:
        """Let go of the connection."""


class SQLiteBooks:
    """Python's own sqlite3, opened for reading."""

    version = sqlite3.sqlite_version

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line: sqlite3.Connection | None = None

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        if self._line is None:
            address = f"file:{self._path}?mode=ro"
            self._line = sqlite3.connect(address, uri=True, timeout=20, isolation_level=None)
        return self._line.execute(question).fetchall()

    def is_sound(self) -> bool:
        return self.rows("PRAGMA integrity_check") == [("ok",)]

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None
