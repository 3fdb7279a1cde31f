"""Two views for people and monitors: who holds a lock now, and who held it last.

They read the clock of the database, as the locks do. `once_lock_holders` has a row for each lock
that is held; `once_lock_history` one for each holding, the running ones among them.
"""

from __future__ import annotations

from typing import Any, Final

HOLDERS: Final = "once_lock_holders"
HISTORY: Final = "once_lock_history"

# The views stand still while tests move the clock: what is written here is written for good.
NOW: Final = {
    "postgresql": "statement_timestamp()",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now')",
    "mysql": "utc_timestamp(6)",
}
MEMBERS: Final = {
    "postgresql": "(member ->> '{0}')",
    "sqlite": "json_extract(member.value, '$.{0}')",
    "mysql": "member.{0}",
}
UNPACKED: Final = {
    "postgresql": "CROSS JOIN LATERAL jsonb_array_elements({lock}.{history}::jsonb) AS member",
    "sqlite": "CROSS JOIN json_each({lock}.{history}) AS member",
    "mysql": (
        "CROSS JOIN JSON_TABLE({lock}.{history}, '$[*]' COLUMNS("
        "fence BIGINT PATH '$.fence', holder VARCHAR(255) PATH '$.holder', "
        "acquired_at VARCHAR(32) PATH '$.acquired_at', ended_at VARCHAR(32) PATH '$.ended_at', "
        "`end` VARCHAR(16) PATH '$.end', `by` VARCHAR(255) PATH '$.by', "
        "reason VARCHAR(255) PATH '$.reason')) AS member"
    ),
}
MOMENT: Final = {
    "postgresql": "{0}::timestamptz",
    "sqlite": "replace(substr({0}, 1, 26), 'T', ' ')",
    "mysql": "CAST(replace(substr({0}, 1, 26), 'T', ' ') AS DATETIME(6))",
}
NUMBER: Final = {"postgresql": "{0}::bigint", "sqlite": "{0}", "mysql": "{0}"}


def create(apps: Any, schema_editor: Any) -> None:
    """Make the views; for a migration."""
    drop(apps, schema_editor)
    for name, select in _views(schema_editor.connection).items():
        quoted = schema_editor.quote_name(name)
        # No parameters: a percent sign in them is nothing but a percent sign.
        schema_editor.execute(f"CREATE VIEW {quoted} AS {select}", params=None)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the views away, where they are; for a migration."""
    for name in (HISTORY, HOLDERS):
        quoted = schema_editor.quote_name(name)
        schema_editor.execute(f"DROP VIEW IF EXISTS {quoted}", params=None)


def _views(connection: Any) -> dict[str, str]:
    quote, vendor = connection.ops.quote_name, connection.vendor
    lock = quote("once_lock")
    column = {name: f"{lock}.{quote(name)}" for name in (
        "name", "holder", "fence", "acquired_at", "expires_at", "released_at", "nonce"
    )}  # fmt: skip
    running = (
        f"{column['nonce']} IS NOT NULL AND {column['released_at']} IS NULL "
        f"AND {column['expires_at']} >= {NOW[vendor]}"
    )
    shown = ", ".join(
        column[name] for name in ("name", "holder", "fence", "acquired_at", "expires_at")
    )
    return {
        HOLDERS: f"SELECT {shown} FROM {lock} WHERE {running}",
        HISTORY: f"{_ended(vendor, lock, column['name'], quote)} UNION ALL "
        f"{_unended(vendor, lock, column, quote)}",
    }


def _ended(vendor: str, lock: str, name: str, quote: Any) -> str:
    member = MEMBERS[vendor].format
    values = {
        "name": name,
        "holder": member("holder"),
        "fence": NUMBER[vendor].format(member("fence")),
        "acquired_at": MOMENT[vendor].format(member("acquired_at")),
        "ended_at": MOMENT[vendor].format(member("ended_at")),
        "ending": member(quote("end") if vendor == "mysql" else "end"),
        "ended_by": f"coalesce({member(quote('by') if vendor == 'mysql' else 'by')}, '')",
        "reason": f"coalesce({member('reason')}, '')",
    }
    shown = ", ".join(f"{value} AS {quote(key)}" for key, value in values.items())
    unpacked = UNPACKED[vendor].format(lock=lock, history=quote("history"))
    return f"SELECT {shown} FROM {lock} {unpacked}"


def _unended(vendor: str, lock: str, column: dict[str, str], quote: Any) -> str:
    """SQL of the holdings that nobody ended: a lapsed one is expired, written down or not."""
    has_lapsed = f"{column['expires_at']} < {NOW[vendor]}"
    values = {
        "name": column["name"], "holder": column["holder"], "fence": column["fence"],
        "acquired_at": column["acquired_at"],
        "ended_at": f"CASE WHEN {has_lapsed} THEN {column['expires_at']} END",
        "ending": f"CASE WHEN {has_lapsed} THEN 'expired' ELSE 'held' END",
        "ended_by": "''", "reason": "''",
    }  # fmt: skip
    shown = ", ".join(f"{value} AS {quote(key)}" for key, value in values.items())
    return (
        f"SELECT {shown} FROM {lock} "
        f"WHERE {column['nonce']} IS NOT NULL AND {column['released_at']} IS NULL"
    )
