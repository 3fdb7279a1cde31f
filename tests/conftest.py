"""What every test stands on: after it, the books must balance."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db import connections

from tests.invariants import violations

MIGRATED = {"django_content_type", "auth_permission", "django_migrations"}
DATABASE_FIXTURES = {"db", "transactional_db"}
GROWN = 4_000_000


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Let processes of the tests hear Ctrl-C: who is started in the background ignores it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def quick_flush():
    """Empty the tables by DELETE, and keep what migrations made: Django's flush takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", deletes)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)
        yield


def deletes(_style: Any, connection: Any, **_: Any) -> list[str]:
    tables = set(connection.introspection.django_table_names(only_existing=True)) - MIGRATED
    # What is deleted may be heard by a channel, whose notification is stored.
    ordered = sorted(tables, key=lambda table: (table.startswith("once_"), table))
    quote, grown = connection.ops.quote_name, grown_tables(connection)
    emptied = [f"DELETE FROM {quote(table)}" for table in ordered if table not in grown]
    emptied += [f"TRUNCATE {quote(table)} CASCADE" for table in ordered if table in grown]
    if connection.vendor != "mysql":
        return emptied
    return ["SET FOREIGN_KEY_CHECKS = 0", *emptied, "SET FOREIGN_KEY_CHECKS = 1"]


def grown_tables(connection: Any) -> set[str]:
    """Return the tables that hold megabytes, most of them dead rows where nobody vacuums."""
    if connection.vendor != "postgresql":
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'once%%' "
            "AND pg_table_is_visible(oid) AND pg_relation_size(oid) > %s",
            [GROWN],
        )
        return {name for (name,) in cursor.fetchall()}


@pytest.fixture(autouse=True)
def books(request):
    """Ask the database, after every test that touched it, whether its rows make sense."""
    if not touches_database(request):
        yield
        return
    # Asked for here, so that the books are read before the database is emptied.
    request.getfixturevalue("db")
    yield
    assert [line for alias in aliases(request) for line in violations(alias)] == []


def touches_database(request: Any) -> bool:
    if request.node.get_closest_marker("books_may_be_wrong") or request.instance is not None:
        return False
    is_marked = request.node.get_closest_marker("django_db") is not None
    return is_marked or bool(DATABASE_FIXTURES & set(request.fixturenames))


def aliases(request: Any) -> list[str]:
    marker = request.node.get_closest_marker("django_db")
    asked = (marker.kwargs.get("databases") if marker else None) or ["default"]
    every = list(connections) if asked == "__all__" else asked
    return [alias for alias in every if not connections[alias].needs_rollback]
