"""A MariaDB of the run's own, which flushes its log at each commit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql

from chaos.servers.durable import Durable
from tools.servers.harness import Harness
from tools.servers.mariadb import Mariadb, answers

NAME = "chaos"


class Server(Durable):
    """The server, its database, and what can be done to its sessions."""

    vendor = "mysql"
    speaks = "mysql"
    stops = {"immediate": signal.SIGKILL, "fast": signal.SIGTERM}
    errors = (pymysql.Error, OSError)
    options = ("--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1")

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness, Mariadb())
        # It was started without durability; from here on it has it.
        self.stop(signal.SIGTERM)
        self.start()
        with closing(self._line(None)) as line, line.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
            cursor.execute("SELECT VERSION()")
            ((self.version,),) = cursor.fetchall()

    @property
    def title(self) -> str:
        return f"MariaDB {self.version.split('-')[0]}, flushing at each commit"

    @property
    def socket(self) -> str:
        """Where the proxy finds the server."""
        return self.address.socket

    def has_answered(self) -> bool:
        return answers(self.place / "mysqld.sock")

    def settings(self, port: int) -> dict[str, Any]:
        """Return Django's settings for a way through this port."""
        return {
            "ENGINE": "django.db.backends.mysql", "NAME": NAME, "USER": "root",
            "HOST": "127.0.0.1", "PORT": port,
            "OPTIONS": {
                "charset": "utf8mb4", "isolation_level": "read committed", "connect_timeout": 5,
            },
        }  # fmt: skip

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give a direct connection, past the proxy."""
        with closing(self._line(NAME)) as line:
            yield line

    def _line(self, database: str | None) -> Any:
        return pymysql.connect(
            unix_socket=self.address.socket, user="root", database=database, autocommit=True,
            connect_timeout=5,
        )  # fmt: skip

    def disturb(self, what: str, dice: Any) -> bool:
        """End the session, or the statement, of somebody; return whether there was anybody."""
        kind = {"terminate": "CONNECTION", "cancel": "QUERY"}[what]
        with self.connected() as line, line.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s "
                "AND id <> CONNECTION_ID()",
                [NAME],
            )
            ids = cursor.fetchall()
            if ids:
                cursor.execute(f"KILL {kind} {int(dice.choice(ids)[0])}")
        return bool(ids)
