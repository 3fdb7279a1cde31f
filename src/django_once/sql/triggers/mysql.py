"""Triggers of MySQL and MariaDB: the row as JSON, column by column, each value as text.

As text, since their JSON has fewer kinds of values than their columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django_once.sql.broadcasts import telling
from django_once.sql.contexts import VARIABLE
from django_once.sql.orders import LONGEST_ORDER, order_begin
from django_once.sql.triggers.values import (
    TIMINGS,
    Installed,
    Stored,
    Trigger,
    is_ours,
    marked,
)
from django_once.sql.triggers.values import literal as any_literal
from django_once.sql.values import PREDECESSOR

POSITION: Final = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"
literal: Final = partial(any_literal, escapes=True)
# What is written as it is; all else becomes text.
NUMBERS: Final = "integer"
BYTES: Final = "bytes"


def source(connection: Any, trigger: Trigger) -> str:
    """Return what a trigger does."""
    quote = connection.ops.quote_name
    lines: list[str] = []
    for stored in trigger.stored:
        lines += _ordered(trigger, stored, quote) if trigger.order_by else ()
        lines.append(_stored(trigger, stored, quote))
    told = _told(trigger, quote)
    lines += [f"{telling('mysql', None, line, told)};" for line in trigger.tells]
    body = " ".join(lines)
    # What the server shows of a body later has its texts written otherwise.
    return f"BEGIN /* {marked(body)} */ {body} END"


def installing(connection: Any, trigger: Trigger) -> list[str]:
    """Return the statements that install a trigger in the place of what has its name."""
    quote = connection.ops.quote_name
    return [
        f"DROP TRIGGER IF EXISTS {quote(trigger.name)}",
        f"CREATE TRIGGER {quote(trigger.name)} {TIMINGS[trigger.timing]} "
        f"{trigger.operation.upper()} ON {quote(trigger.table)} FOR EACH ROW "
        f"{source(connection, trigger)}",
    ]


def removing(connection: Any, installed: Installed) -> list[str]:
    """Return the statements that take a trigger away."""
    return [f"DROP TRIGGER IF EXISTS {connection.ops.quote_name(installed.name)}"]


def installed(connection: Any) -> list[Installed]:
    """Return the triggers of ours that there are."""
    sql = (
        "SELECT trigger_name, event_object_table, action_statement "
        "FROM information_schema.triggers WHERE trigger_schema = database() ORDER BY trigger_name"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [
            Installed(name, table, text) for name, table, text in cursor.fetchall() if is_ours(name)
        ]


def _told(trigger: Trigger, quote: Any) -> str:
    members = [f"'event', {literal(trigger.event)}", f"'schema', {literal(trigger.schema)}"]
    for row in trigger.rows:
        columns = [
            f"{literal(column.name)}, {_value(column.kind, f'{row.upper()}.{quote(column.name)}')}"
            for column in trigger.columns
        ]
        members.append(f"'{row}', CAST(JSON_OBJECT({', '.join(columns)}) AS CHAR)")
    members.append(f"'context', CAST({VARIABLE} AS CHAR)")
    return f"CAST(JSON_OBJECT({', '.join(members)}) AS CHAR)"


def _value(kind: str, value: str) -> str:
    if kind == NUMBERS:
        return value
    if kind == BYTES:
        return f"HEX({value})"
    return f"CAST({value} AS CHAR)"


def _place(trigger: Trigger, stored: Stored, quote: Any) -> str:
    row = trigger.rows[-1].upper()
    parts = [f"coalesce(CAST({row}.{quote(name)} AS CHAR), '')" for name in trigger.order_by]
    whole = ", ':', ".join(parts)
    begin = literal(order_begin(stored.task))
    return f"concat({begin}, left(concat({whole}), {LONGEST_ORDER}))"


def _ordered(trigger: Trigger, stored: Stored, quote: Any) -> list[str]:
    key, backend = quote("key"), literal(trigger.backend)
    place = _place(trigger, stored, quote)
    return [
        f"INSERT INTO once_series (backend, {key}, generation) VALUES ({backend}, {place}, 1) "
        "ON DUPLICATE KEY UPDATE generation = generation + 1;",
        f"SET @once_turn = (SELECT generation FROM once_series WHERE backend = {backend} "
        f"AND {key} = {place});",
        "SET @once_waits = EXISTS (SELECT 1 FROM once_job AS job "
        f"WHERE job.order_key = {place} AND job.finished_at IS NULL AND job.backend = {backend});",
    ]


def _stored(trigger: Trigger, stored: Stored, quote: Any) -> str:
    values = {
        "backend": literal(trigger.backend), "task": literal(stored.task),
        "kwargs": _told(trigger, quote), "queue": literal(stored.queue),
        "priority": literal(stored.priority), "max_attempts": literal(stored.max_attempts),
        "max_deaths": literal(stored.max_deaths), "timeout": literal(stored.timeout),
        "delivery": literal(stored.delivery), "channel": literal(trigger.channel),
        "kept_for": literal(stored.kept_for), "position": POSITION,
    }  # fmt: skip
    if trigger.order_by:
        values |= {
            "order_key": _place(trigger, stored, quote), "generation": "@once_turn",
            "blocked_by": f"CASE WHEN @once_waits THEN '{PREDECESSOR}' ELSE '' END",
            "position": f"CASE WHEN NOT @once_waits THEN {POSITION} END",
        }  # fmt: skip
    return f"INSERT INTO once_job ({', '.join(values)}) VALUES ({', '.join(values.values())});"
