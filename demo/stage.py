"""Where the shop's rows live: a file of SQLite, or a new database on a server of PostgreSQL.

A server that was named, or that runs here, is asked for one thing: to make a database called
once_demo_… and to drop it at the end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.books import Books, SQLiteBooks

VARIABLE = "ONCE_DEMO_DATABASE_URL"


class Refusal(Exception):
    """Something that the person at the keyboard must see to."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database of the demo's own: its address, and how the conductor reads it."""

    url: str
    title: str
    url_shown: str
    books: Books


@contextmanager
def database(kind: str, directory: Path, *, keep: bool) -> Iterator[Database]:
    """Make a database for one play; it is gone afterwards, unless it shall be kept."""
    if kind == "sqlite":
        path = directory / "shop.sqlite3"
        books: Books = SQLiteBooks(path)
        yield Database(f"sqlite://{path}", f"SQLite {books.version}", str(path), books)
        books.close()
        return
    with server() as url, on_postgresql(url, keep=keep) as found:
        yield found


@contextmanager
def server() -> Iterator[str]:
    """Give the address of a server: the one that was named, one that runs, or one of our own."""
    named = os.environ.get(VARIABLE)
    if named:
        if not named.startswith(("postgres://", "postgresql://")):
            raise Refusal(f"{VARIABLE} must begin with postgresql://, for --db postgres.")
        yield named
        return
    try:
        from tools.errors import Refusal as NotFound
        from tools.interpreters import probe
        from tools.servers.harness import Harness
        from tools.servers.kinds import KINDS
        from tools.servers.search import Search
        from tools.servers.server import Server
    except ImportError as error:
        raise Refusal(f"Set {VARIABLE} to a server of PostgreSQL ({error}).") from error
    with Harness() as harness:
        interpreter = probe(sys.executable)
        if isinstance(interpreter, str):
            raise Refusal(f"This Python cannot look for a server: {interpreter} Set {VARIABLE}.")
        try:
            found = Search(sys.executable, interpreter, harness).find(KINDS["postgresql"])
        except NotFound as refusal:
            raise Refusal(f"{refusal} Or set {VARIABLE}.") from refusal
        if not isinstance(found, Server):
            raise Refusal(f"There is {found.reason}. Set {VARIABLE}, or: {found.remedy}")
        yield found.address.url


@contextmanager
def on_postgresql(url: str, *, keep: bool) -> Iterator[Database]:
    """Make a database on a server, and drop it at the end."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
    except ImportError as error:
        raise Refusal(
            "PostgreSQL needs a driver: install psycopg[binary] where the demo runs."
        ) from error
    from demo.postgresql import PostgreSQLBooks

    said = conninfo_to_dict(url)
    name = f"once_demo_{secrets.token_hex(4)}"
    maintenance = make_conninfo(url, dbname=said.get("dbname") or "postgres")
    own = make_conninfo(url, dbname=name)
    try:
        with psycopg.connect(maintenance, autocommit=True) as line:
            line.execute(f'CREATE DATABASE "{name}"')
    except psycopg.Error as error:
        raise Refusal(f"No database could be made on the server: {str(error).strip()}") from error
    books = PostgreSQLBooks(own)
    try:
        shown = f"database {name} at {shown_address(said)}"
        yield Database(own, f"PostgreSQL {books.version}", shown, books)
    finally:
        books.close()
        if not keep:
            with psycopg.connect(maintenance, autocommit=True) as line:
                line.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def shown_address(said: dict[str, Any]) -> str:
    """Return where a server is, without a password."""
    return ":".join(str(said[part]) for part in ("host", "port") if said.get(part)) or "localhost"


def remove(directory: Path) -> None:
    """Remove what the demo has written."""
    for _ in range(20):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        # A process that was killed is not always gone yet.
        time.sleep(0.05)
