"""`once_enqueue` and what it stands on: functions of PostgreSQL, one file each.

They are made by the migration. Their text changes with releases, and so each `migrate` makes them
anew when they are not those of this release: a mark in the comment of `once_enqueue` says which
they are.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.db import transaction

# Each stands on those before it.
NAMES: Final = (
    "once_now", "once_new_id", "once_refuse", "once_json", "once_compact", "once_python",
    "once_canonical", "once_arguments", "once_named", "once_declared", "once_check_queue",
    "once_check_moment", "once_priority", "once_wake", "once_tell", "once_flow", "once_store",
    "once_add", "once_add_unique", "once_enqueue",
)  # fmt: skip
# Two that migrate at once would replace the same function at once, which is an error.
ADVISORY_LOCK: Final = 0x6F6E6365


def create(apps: Any, schema_editor: Any) -> None:
    """Make the functions; for a migration."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in _statements():
            schema_editor.execute(statement, params=None)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the functions away, where they are; for a migration."""
    if schema_editor.connection.vendor == "postgresql":
        for name in reversed(NAMES):
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}", params=None)


def renew(connection: Any) -> bool:
    """Make the functions anew unless they are those of this release; say whether it did."""
    if is_current(connection):
        return False
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        for statement in _statements():
            cursor.execute(statement)
    return True


def is_current(connection: Any) -> bool:
    """Return whether the functions of this database are those of this release."""
    return _comments(connection) == [_comment()]


def is_there(connection: Any) -> bool:
    """Return whether this database has the functions, of whatever release."""
    return bool(_comments(connection))


def move(connection: Any, seconds: float) -> None:
    """Let the functions see this session's clock so many seconds later; for tests.

    Asked of the driver: a test that may not ask its database may move the clock. In a transaction
    that is broken nobody sees it, and a session that is gone sees nothing.
    """
    with suppress(connection.Database.Error), connection.connection.cursor() as cursor:
        cursor.execute("SELECT set_config('once.moved_seconds', %s, false)", [str(seconds)])


def _comments(connection: Any) -> list[str]:
    question = (
        "SELECT obj_description(oid, 'pg_proc') FROM pg_proc "
        "WHERE proname = 'once_enqueue' AND pg_function_is_visible(oid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(question)
        return [comment for (comment,) in cursor.fetchall()]


@cache
def _texts() -> tuple[str, ...]:
    folder = Path(__file__).parent
    return tuple((folder / f"{name}.sql").read_text() for name in NAMES)


def _statements() -> tuple[str, ...]:
    return *_texts(), f"COMMENT ON FUNCTION once_enqueue IS '{_comment()}'"


def _comment() -> str:
    mark = hashlib.sha256("".join(_texts()).encode()).hexdigest()[:12]
    return f"Stores a job of a task in this transaction. django-once {mark}"
