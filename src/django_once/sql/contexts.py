"""What a session says of itself, where the triggers of its own writes can read it."""

from __future__ import annotations

from typing import Any, Final

SETTING: Final = "once.notification_context"
VARIABLE: Final = "@once_notification_context"
TEMPORARY: Final = "once_notification_context"


def put(connection: Any, text: str, *, is_passing: bool) -> None:
    """Let the triggers of this session add a context; until its transaction ends, if it passes."""
    vendor = connection.vendor
    if vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config(%s, %s, %s)", [SETTING, text, is_passing])
    elif vendor == "mysql":
        _put_in_variable(connection, text, is_passing=is_passing)
    else:
        _put_in_trigger(connection, text, is_passing=is_passing)


def _put_in_variable(connection: Any, text: str, *, is_passing: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET {VARIABLE} = %s", [text or None])
    if is_passing:
        # No transaction takes a variable back: who undoes one sets it anew.
        connection.on_commit(lambda: _put_in_variable(connection, "", is_passing=False))


def _put_in_trigger(connection: Any, text: str, *, is_passing: bool) -> None:
    """Let a trigger of this session only add the context to what it stores.

    SQLite has no variables of a session, and a function that this session defines would be missing
    in others, whose writes would fail. A temporary trigger is theirs alone who made it.
    """
    literal = "'" + text.replace("'", "''") + "'"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER IF EXISTS temp.{TEMPORARY}")
        if text:
            cursor.execute(
                f"CREATE TEMP TRIGGER {TEMPORARY} AFTER INSERT ON main.once_job "
                "WHEN NEW.channel IS NOT NULL AND json_extract(NEW.kwargs, '$.event') <> 'told' "
                "BEGIN UPDATE once_job SET "
                f"kwargs = json_set(kwargs, '$.context', {literal}) WHERE id = NEW.id; END",
                None,
            )
    if is_passing:
        connection.on_commit(lambda: _put_in_trigger(connection, "", is_passing=False))
