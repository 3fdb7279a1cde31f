"""Where it is measured: a server that keeps what it commits, and a database of the bench's own.

PostgreSQL is started for the run, on disk, durable, with the memory a small production server
has; where no binaries are, a running server is used. MariaDB is the one that runs, or one of our
own. Whatever server it is, the bench makes a database called once_bench_… there and drops it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.errors import Refusal
from tools.errors import Refusal as NotFound
from tools.interpreters import probe
from tools.servers.harness import Harness
from tools.servers.kind import Kind
from tools.servers.kinds import KINDS
from tools.servers.postgresql import OPTIONS, Postgresql
from tools.servers.search import Search
from tools.servers.server import Server

DATABASES: Final = ("postgresql", "sqlite", "mariadb", "mysql")
PREFIX: Final = "once_bench_"
VARIABLE: Final = "ONCE_BENCH_SERVER_URL"

# What a small server in production has. The rest is PostgreSQL's own.
DURABLE: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "autovacuum_naptime": "60s",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
}


class Durable(Postgresql):
    """PostgreSQL with the durability and the memory that a measurement needs."""

    options = {**OPTIONS, **DURABLE}


class Plain(Durable):
    """The same where the extension that counts statements is not installed."""

    options = {
        name: value for name, value in Durable.options.items() if "pg_stat_statements" not in value
        and "pg_stat_statements" not in name
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A database of the bench's own, and what was said of its server."""

    kind: str
    url: str
    title: str


@contextmanager
def place(kind: str) -> Iterator[Place]:
    """Make a database to measure on; it is gone afterwards."""
    if kind == "sqlite":
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            yield Place(kind, f"sqlite://{directory}/bench.sqlite3", _sqlite_title())
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    with Harness() as harness:
        url, title = _server(kind, harness)
        name = PREFIX + secrets.token_hex(4)
        own = with_database(url, name)
        _ask(url, f"CREATE DATABASE {name}")
        try:
            yield Place(kind, own, title)
        finally:
            _ask(url, f"DROP DATABASE {name}" + (" WITH (FORCE)" if kind == "postgresql" else ""))


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{name}{query}"


def _sqlite_title() -> str:
    import sqlite3  # noqa: PLC0415 - a Python without it measures the others

    return f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=NORMAL"


def _server(kind: str, harness: Harness) -> tuple[str, str]:
    """Return the URL of a server and what to call it."""
    interpreter = probe(sys.executable)
    if isinstance(interpreter, str):
        raise Refusal(f"This Python cannot look for a server: {interpreter}")
    search = Search(sys.executable, interpreter, harness)
    named = os.environ.get(VARIABLE)
    if named and named.startswith(kind[:5]):
        return named, f"the server that {VARIABLE} names"
    found: Server | None = None
    reasons: list[str] = []
    if kind == "postgresql":
        for own in (Durable(), Plain()):
            found = found or _of_our_own(own, search, reasons)
    if found is not None:
        return found.address.url, (
            f"{found.title} of the bench's own, fsync=on, shared_buffers=512MB, autovacuum on"
        )
    try:
        answer = search.find(KINDS[kind])
    except NotFound as refusal:
        raise Refusal(f"{refusal} Or set {VARIABLE}.") from refusal
    if not isinstance(answer, Server):
        raise Refusal(f"There is {answer.reason}. Remedy: {answer.remedy}")
    return answer.address.url, f"{answer.title}, {answer.origin} with settings of its own"


def _of_our_own(kind: Kind, search: Search, reasons: list[str]) -> Server | None:
    try:
        return search.our_own(kind, reasons)
    except NotFound as refusal:
        reasons.append(str(refusal))
        return None


def _ask(url: str, statement: str) -> None:
    """Run one statement on a server, outside every transaction."""
    scheme = urlsplit(url).scheme
    try:
        if scheme == "postgresql":
            _ask_postgresql(url, statement)
        else:
            _ask_mysql(url, statement)
    except ImportError as error:
        raise Refusal(f"{scheme} needs a driver: {error}.") from error


def _ask_postgresql(url: str, statement: str) -> None:
    import psycopg  # noqa: PLC0415 - where a driver is missing the others are measured

    try:
        with psycopg.connect(with_database(url, "postgres"), autocommit=True) as line:
            line.execute(statement.encode())
    except psycopg.Error as error:
        raise Refusal(f"The server did not do it: {str(error).strip()}") from error


def _ask_mysql(url: str, statement: str) -> None:
    import pymysql  # noqa: PLC0415 - as above

    from tools.servers.address import read_address  # noqa: PLC0415
    from tools.servers.ask import mysql  # noqa: PLC0415

    try:
        with mysql(read_address(url)) as line, line.cursor() as cursor:
            cursor.execute(statement)
    except pymysql.MySQLError as error:
        raise Refusal(f"The server did not do it: {error}") from error
