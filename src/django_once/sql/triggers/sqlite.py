"""Triggers of SQLite: the row as JSON, column by column, since it has no word for a whole row.

Any column may hold a value of any kind, so it is asked of each value. A number with a fraction goes
as text of seventeen digits, for SQLite's own JSON keeps fifteen.
"""

from __future__ import annotations

from typing import Any, Final

from django_once.sql.broadcasts import telling
from django_once.sql.orders import LONGEST_ORDER, order_begin
from django_once.sql.triggers.values import TIMINGS, Installed, Stored, Trigger, is_ours, literal
from django_once.sql.values import PREDECESSOR

POSITION: Final = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


def source(connection: Any, trigger: Trigger) -> str:
    """Return the statement that makes a trigger."""
    quote = connection.ops.quote_name
    statements: list[str] = []
    for stored in trigger.stored:
        if trigger.order_by:
            statements.append(_taking_place(trigger, stored, quote))
        statements.append(_stored(trigger, stored, quote))
    told = _told(trigger, quote)
    statements += [telling("sqlite", None, line, told) for line in trigger.tells]
    return (
        f"CREATE TRIGGER {quote(trigger.name)} {TIMINGS[trigger.timing]} "
        f"{trigger.operation.upper()} ON {quote(trigger.table)} FOR EACH ROW BEGIN "
        f"{'; '.join(statements)}; END"
    )


def installing(connection: Any, trigger: Trigger) -> list[str]:
    """Return the statements that install a trigger in the place of what has its name."""
    name = connection.ops.quote_name(trigger.name)
    return [f"DROP TRIGGER IF EXISTS {name}", source(connection, trigger)]


def removing(connection: Any, installed: Installed) -> list[str]:
    """Return the statements that take a trigger away."""
    return [f"DROP TRIGGER IF EXISTS {connection.ops.quote_name(installed.name)}"]


def installed(connection: Any) -> list[Installed]:
    """Return the triggers of ours that there are."""
    sql = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [
            Installed(name, table, text) for name, table, text in cursor.fetchall() if is_ours(name)
        ]


def _told(trigger: Trigger, quote: Any) -> str:
    members = [f"'event', {literal(trigger.event)}", f"'schema', {literal(trigger.schema)}"]
    # Put together as text: a text inside JSON, not a part of it, and of any number of columns.
    members += [f"'{row}', {_row(trigger, row.upper(), quote)}" for row in trigger.rows]
    return f"json_object({', '.join(members)})"


def _row(trigger: Trigger, row: str, quote: Any) -> str:
    members = []
    for column in trigger.columns:
        value = f"{row}.{quote(column.name)}"
        written = (
            f"CASE typeof({value}) WHEN 'real' THEN json_quote(printf('%!.17g', {value})) "
            f"WHEN 'blob' THEN json_quote(hex({value})) ELSE json_quote({value}) END"
        )
        members.append(f"json_quote({literal(column.name)}) || ':' || {written}")
    return "('{' || " + " || ',' || ".join(members) + " || '}')"


def _place(trigger: Trigger, stored: Stored, quote: Any) -> str:
    row = trigger.rows[-1].upper()
    parts = [f"coalesce(CAST({row}.{quote(name)} AS TEXT), '')" for name in trigger.order_by]
    whole = " || ':' || ".join(parts)
    return f"{literal(order_begin(stored.task))} || substr({whole}, 1, {LONGEST_ORDER})"


def _taking_place(trigger: Trigger, stored: Stored, quote: Any) -> str:
    key = quote("key")
    return (
        f"INSERT INTO once_series (backend, {key}, generation) "
        f"VALUES ({literal(trigger.backend)}, {_place(trigger, stored, quote)}, 1) "
        f"ON CONFLICT (backend, {key}) DO UPDATE SET generation = generation + 1"
    )


def _stored(trigger: Trigger, stored: Stored, quote: Any) -> str:
    backend = literal(trigger.backend)
    values = {
        "backend": backend, "task": literal(stored.task), "kwargs": _told(trigger, quote),
        "queue": literal(stored.queue), "priority": literal(stored.priority),
        "max_attempts": literal(stored.max_attempts), "max_deaths": literal(stored.max_deaths),
        "timeout": literal(stored.timeout), "delivery": literal(stored.delivery),
        "channel": literal(trigger.channel), "kept_for": literal(stored.kept_for),
        "position": POSITION,
    }  # fmt: skip
    if trigger.order_by:
        place = _place(trigger, stored, quote)
        waits = (
            f"EXISTS (SELECT 1 FROM once_job AS job WHERE job.order_key = {place} "
            f"AND job.finished_at IS NULL AND job.backend = {backend})"
        )
        turn = (
            f"(SELECT generation FROM once_series WHERE backend = {backend} "
            f"AND {quote('key')} = {place})"
        )
        values |= {
            "order_key": place, "generation": turn,
            "blocked_by": f"CASE WHEN {waits} THEN '{PREDECESSOR}' ELSE '' END",
            "position": f"CASE WHEN NOT {waits} THEN {POSITION} END",
        }  # fmt: skip
    return f"INSERT INTO once_job ({', '.join(values)}) VALUES ({', '.join(values.values())})"
