"""Triggers of PostgreSQL: a function each, which writes rows down whole.

It does not name the columns of its table, so a migration that changes them breaks no writer, and
every value is written as the database itself would. The time of the wakeup is kept by the session,
so that one which writes much sends few: a NOTIFY takes a lock of the whole server at its commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from django_once.sql.broadcasts import telling
from django_once.sql.contexts import SETTING
from django_once.sql.orders import LONGEST_ORDER, order_begin
from django_once.sql.triggers.values import TIMINGS, Installed, Stored, Trigger, is_ours, literal
from django_once.sql.values import PREDECESSOR

POSITION: Final = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
QUOTES: Final = "$once$"
# As those say it who announce jobs from Python.
CHANNEL: Final = "once_wakeup"
WINDOW: Final = 0.05


def home(connection: Any) -> str | None:
    """Return the schema in which the jobs are, or None when there are none."""
    sql = (
        "SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE c.oid = to_regclass('once_job')"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for (name,) in cursor.fetchall():
            return connection.ops.quote_name(str(name))  # type: ignore[no-any-return]
    return None


def source(connection: Any, trigger: Trigger) -> str:
    """Return what the function of a trigger does."""
    where = home(connection)
    declared = [f"{row}_row text := row_to_json({row.upper()})::text;" for row in trigger.rows]
    pairs = [f"'event', {literal(trigger.event)}", f"'schema', {literal(trigger.schema)}"]
    pairs += [f"'{row}', {row}_row" for row in trigger.rows]
    pairs.append(f"'context', nullif(current_setting('{SETTING}', true), '')")
    lines = ["DECLARE", *declared, f"told text := json_build_object({', '.join(pairs)})::text;"]
    if trigger.order_by:
        lines += ["place text;", "turn bigint;", "waits boolean;"]
    if trigger.wakes:
        lines += ["woken text;"]
    lines.append("BEGIN")
    for stored in trigger.stored:
        lines += _ordered(trigger, stored, where) if trigger.order_by else ()
        lines.append(_stored(trigger, stored, where))
    if trigger.stored and trigger.wakes:
        lines += _waking(trigger.backend)
    lines += [telling("postgresql", where, line, "told") for line in trigger.tells]
    # What a trigger before a change returns is what is written: nothing would cancel it.
    answer = "OLD" if trigger.operation == "delete" else "NEW"
    lines += [f"RETURN {answer};" if trigger.timing == "pre" else "RETURN NULL;", "END"]
    return "\n" + "\n".join(lines) + "\n"


def installing(connection: Any, trigger: Trigger) -> list[str]:
    """Return the statements that install a trigger in the place of what has its name."""
    quote = connection.ops.quote_name
    function = f"{home(connection)}.{quote(trigger.name)}"
    return [
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
        f"{QUOTES}{source(connection, trigger)}{QUOTES}",
        f"DROP TRIGGER IF EXISTS {quote(trigger.name)} ON {quote(trigger.table)}",
        f"CREATE TRIGGER {quote(trigger.name)} {TIMINGS[trigger.timing]} "
        f"{trigger.operation.upper()} ON {quote(trigger.table)} FOR EACH ROW "
        f"EXECUTE FUNCTION {function}()",
    ]


def removing(connection: Any, installed: Installed) -> list[str]:
    """Return the statements that take a trigger away."""
    name = connection.ops.quote_name(installed.name)
    # A table that was dropped has taken its trigger with it, and left the function.
    return [f"DROP FUNCTION IF EXISTS {name}() CASCADE"]


def installed(connection: Any) -> list[Installed]:
    """Return the triggers of ours that there are, and functions whose trigger went with its table.

    Those of partitions are parts of the one above.
    """
    sql = """
        SELECT p.proname, c.relname, p.prosrc, t.tgenabled IN ('O', 'A')
        FROM pg_proc AS p
        LEFT JOIN pg_trigger AS t ON t.tgfoid = p.oid AND t.tgname = p.proname AND t.tgparentid = 0
        LEFT JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE p.prorettype = 'trigger'::regtype AND p.proname LIKE 'once%'
        AND pg_function_is_visible(p.oid) ORDER BY p.proname"""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [
            Installed(name, table or "", text, bool(is_enabled))
            for name, table, text, is_enabled in cursor.fetchall()
            if is_ours(name)
        ]


def read_as(connection: Any, kind: str, text: str) -> Any:
    """Return what a text is as a value of a type that only the database knows."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{kind}", [text])
        ((read,),) = cursor.fetchall()
    return read


def _stored(trigger: Trigger, stored: Stored, where: str | None) -> str:
    values = {
        "backend": literal(trigger.backend), "task": literal(stored.task), "kwargs": "told",
        "queue": literal(stored.queue), "priority": literal(stored.priority),
        "max_attempts": literal(stored.max_attempts), "max_deaths": literal(stored.max_deaths),
        "timeout": literal(stored.timeout), "delivery": literal(stored.delivery),
        "channel": literal(trigger.channel), "kept_for": literal(stored.kept_for),
        "position": POSITION,
    }  # fmt: skip
    if trigger.order_by:
        values |= {
            "order_key": "place", "generation": "turn",
            "blocked_by": f"CASE WHEN waits THEN '{PREDECESSOR}' ELSE '' END",
            "position": f"CASE WHEN NOT waits THEN {POSITION} END",
        }  # fmt: skip
    return (
        f"INSERT INTO {where}.once_job ({', '.join(values)}) VALUES ({', '.join(values.values())});"
    )


def _ordered(trigger: Trigger, stored: Stored, where: str | None) -> Iterator[str]:
    """Take the next place of this row's order, and look whether somebody is before it."""
    row = trigger.rows[-1]
    parts = [f"coalesce({row}_row::json ->> {literal(name)}, '')" for name in trigger.order_by]
    whole = " || ':' || ".join(parts)
    yield f"place := {literal(order_begin(stored.task))} || left({whole}, {LONGEST_ORDER});"
    backend = literal(trigger.backend)
    yield (
        f"INSERT INTO {where}.once_series AS series (backend, key, generation) "
        f"VALUES ({backend}, place, 1) ON CONFLICT (backend, key) "
        "DO UPDATE SET generation = series.generation + 1 RETURNING series.generation INTO turn;"
    )
    yield (
        f"waits := EXISTS (SELECT 1 FROM {where}.once_job AS job WHERE job.order_key = place "
        f"AND job.finished_at IS NULL AND job.backend = {backend});"
    )


def _waking(backend: str) -> Iterator[str]:
    mark = hashlib.sha1(backend.encode(), usedforsecurity=False).hexdigest()[:8]
    setting = f"once.woken_{mark}"
    yield f"woken := nullif(current_setting('{setting}', true), '');"
    now = "extract(epoch from clock_timestamp())"
    yield f"IF woken IS NULL OR {now} - woken::numeric NOT BETWEEN 0 AND {WINDOW} THEN"
    yield f"PERFORM set_config('{setting}', {now}::text, false);"
    yield f"PERFORM pg_notify('{CHANNEL}', {literal(backend)});"
    yield "END IF;"
