"""A PostgreSQL of the run's own, with every promise of durability kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from chaos.servers.durable import Durable
from tools.servers.harness import Harness
from tools.servers.postgresql import OPTIONS, Postgresql, is_ready

NAME = "chaos"
MOST_CONNECTIONS = 120


class Kept(Postgresql):
    """PostgreSQL as in production: with any of these off, a crash loses what was acknowledged."""

    options = {
        **OPTIONS,
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": str(MOST_CONNECTIONS),
        "log_min_messages": "fatal",
    }


class Server(Durable):
    """The server, its database, and what can be done to its sessions."""

    vendor = "postgresql"
    speaks = "postgresql"
    stops = {"immediate": signal.SIGQUIT, "fast": signal.SIGINT}
    errors = (psycopg.Error, OSError)

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness, Kept())
        with self._line("postgres") as line:
            line.execute(f"CREATE DATABASE {NAME}")
            (self.version,) = line.execute("SHOW server_version").fetchone() or ("",)

    @property
    def title(self) -> str:
        return f"PostgreSQL {self.version.split()[0]}, fsync and synchronous_commit on"

    @property
    def socket(self) -> str:
        """Where the proxy finds the server."""
        return os.path.join(self.address.socket, ".s.PGSQL.5432")

    def has_answered(self) -> bool:
        # What an immediate stop leaves behind says "ready" too, of the server that is no more.
        page = self.place / "data" / "postmaster.pid"
        said = page.read_text().split() if page.exists() else []
        return said[:1] == [str(self.pid)] and is_ready(self.place)

    def settings(self, port: int) -> dict[str, Any]:
        """Return Django's settings for a way through this port."""
        return {
            "ENGINE": "django.db.backends.postgresql", "NAME": NAME, "USER": "postgres",
            "HOST": "127.0.0.1", "PORT": str(port),
            "OPTIONS": {"sslmode": "disable", "gssencmode": "disable", "connect_timeout": 5},
        }  # fmt: skip

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Give a direct connection, past the proxy."""
        with self._line(NAME) as line:
            yield line

    def _line(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=self.address.socket, user="postgres", dbname=database, autocommit=True,
            connect_timeout=5,
        )  # fmt: skip

    def disturb(self, what: str, dice: Any) -> bool:
        """End the session, or the statement, of somebody; return whether there was anybody."""
        function = {"terminate": "pg_terminate_backend", "cancel": "pg_cancel_backend"}[what]
        with self.connected() as line:
            pids = line.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid() "
                "AND (%s OR state <> 'idle')",
                [NAME, what == "terminate"],
            ).fetchall()
            if pids:
                line.execute(f"SELECT {function}(%s)", list(dice.choice(pids)))
        return bool(pids)

    @contextmanager
    def crowded(self) -> Iterator[None]:
        """Take so many connections that nobody else can open one."""
        lines: list[psycopg.Connection[Any]] = []
        try:
            while len(lines) < MOST_CONNECTIONS:
                lines.append(self._line(NAME))
        except psycopg.OperationalError:
            pass  # Full, as was wanted.
        try:
            yield
        finally:
            for line in lines:
                line.close()
