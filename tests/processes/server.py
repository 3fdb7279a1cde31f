"""A PostgreSQL of the tests' own, with fsync, which may be stopped in any way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections

from tests.processes.workers import until
from tools.servers.account import account_for
from tools.servers.postgresql import Postgresql, is_ready

NAME = "once"


class Server:
    """One cluster in a directory of its own, reached through a socket there."""

    def __init__(self) -> None:
        installed = Postgresql().installed()
        account = account_for(Postgresql.accounts)
        if not installed or account is None:
            pytest.skip("no PostgreSQL is installed that could be started and stopped here")
        self._account = account
        self._programs = installed[0].program.parent
        # Short, since the path of a socket is limited.
        self.place = Path(tempfile.mkdtemp(prefix="once-pg-", dir="/tmp"))
        account.give(self.place)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self.place / "data"), "-U", "postgres", "-A", "trust",
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip

    @property
    def settings(self) -> dict[str, Any]:
        return {"HOST": str(self.place), "PORT": "", "USER": "postgres", "NAME": NAME}

    def start(self) -> None:
        argv = [str(self._programs / "postgres"), "-D", str(self.place / "data")]
        argv += ["-k", str(self.place), "-c", "listen_addresses=", "-c", "shared_buffers=32MB"]
        self._process = subprocess.Popen(
            self._account.prefixed(sys.executable, argv),
            cwd=self.place,
            stdout=(self.place / "log").open("ab"),
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(self.place)},
            start_new_session=True,
        )
        until(lambda: is_ready(self.place), 30, "the server's start")

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop it: SIGINT ends sessions, SIGQUIT is as if the power failed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
        self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.place, ignore_errors=True)

    def execute(self, sql: str) -> None:
        with psycopg.connect(
            f"host={self.place} user=postgres dbname=postgres", autocommit=True
        ) as line:
            line.execute(sql)

    def _run(self, program: str, *arguments: str) -> None:
        argv = self._account.prefixed(sys.executable, [str(self._programs / program), *arguments])
        subprocess.run(argv, cwd=self.place, check=True, capture_output=True)


@contextmanager
def at_home_on(server: Server) -> Iterator[None]:
    """Let this process's default alias be a fresh, migrated database of that server."""
    connection = connections["default"]
    before = connection.settings_dict.copy()
    connection.close()
    server.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
    server.execute(f"CREATE DATABASE {NAME}")
    connection.settings_dict.update(server.settings)
    try:
        call_command("migrate", run_syncdb=True, verbosity=0)
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
