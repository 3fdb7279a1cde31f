"""A file of SQLite, and a second writer that holds its one lock."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

TIMEOUT = 3.0
HOLD = (
    "import sqlite3, sys, time; line = sqlite3.connect(sys.argv[1], timeout=10, "
    "isolation_level=None); line.execute('BEGIN IMMEDIATE'); time.sleep(float(sys.argv[2])); "
    "line.execute('COMMIT')"
)


class File:
    """The file."""

    vendor = "sqlite"
    speaks = ""
    errors = (sqlite3.Error, OSError)
    title = f"SQLite {sqlite3.sqlite_version}, WAL"

    def __init__(self, directory: Path) -> None:
        self.path = directory / "chaos.sqlite3"

    def settings(self, port: int) -> dict[str, Any]:
        """Return Django's settings, as the documents recommend them but for a shorter patience."""
        return {
            "ENGINE": "django.db.backends.sqlite3", "NAME": str(self.path),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE", "timeout": TIMEOUT,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            },
        }  # fmt: skip

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Give a connection of the conductor's own."""
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as line:
            yield line

    def hold(self, seconds: float) -> subprocess.Popen[bytes]:
        """Let a second writer hold the lock for so long."""
        return subprocess.Popen([sys.executable, "-c", HOLD, str(self.path), str(seconds)])
