"""A trigger that refuses a write whose fence is lower than the row's, whoever sends it."""

from __future__ import annotations

from typing import Any, Final

REFUSAL: Final = "This write carries a lower fence than the row has seen."
FUNCTION: Final = "once_refuse_lower_fence"


def trigger_name(table: str, column: str) -> str:
    """Return the trigger's name; no database takes one of more than 63 characters."""
    return f"{table[:40]}_{column[:12]}_grows"


def create(schema_editor: Any, table: str, column: str) -> None:
    """Let the database refuse every update that would lower this column."""
    quote, vendor = schema_editor.quote_name, schema_editor.connection.vendor
    fence = quote(column)
    begin = f"CREATE TRIGGER {quote(trigger_name(table, column))} BEFORE UPDATE ON {quote(table)}"
    if vendor == "postgresql":
        schema_editor.execute(
            f"CREATE OR REPLACE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'"
            "; END $$",
            params=None,
        )
        when = f"WHEN (NEW.{fence} < OLD.{fence}) EXECUTE FUNCTION {FUNCTION}()"
    elif vendor == "sqlite":
        when = f"WHEN NEW.{fence} < OLD.{fence} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    else:
        when = (
            f"BEGIN IF NEW.{fence} < OLD.{fence} THEN SIGNAL SQLSTATE '23000' "
            f"SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = '{REFUSAL}'; END IF; END"
        )
    schema_editor.execute(f"{begin} FOR EACH ROW {when}", params=None)


def drop(schema_editor: Any, table: str, column: str) -> None:
    """Take the trigger away; the function stays for the triggers of other tables."""
    quote = schema_editor.quote_name
    on = f" ON {quote(table)}" if schema_editor.connection.vendor == "postgresql" else ""
    name = quote(trigger_name(table, column))
    schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}{on}", params=None)
