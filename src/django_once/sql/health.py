"""What a server says of its own health: who holds old rows, how many are dead, and whose lease.

Nothing here is asked on a hot path. What a user may not see is left out by the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django_once.sql.facts import TABLES

# A transaction of somebody else's text says whose it is; what it says is other people's data.
_POSTGRESQL_OPEN: Final = """
    SELECT pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''),
        extract(epoch FROM clock_timestamp() - xact_start),
        greatest(coalesce(age(backend_xmin), 0), coalesce(age(backend_xid), 0))
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 second' * %s
        AND (datname = current_database() OR backend_xmin IS NOT NULL)
        AND backend_type IN ('client backend', 'walsender', 'parallel worker')
    ORDER BY xact_start LIMIT 20
"""
_POSTGRESQL_PREPARED: Final = """
    SELECT gid, owner, extract(epoch FROM clock_timestamp() - prepared)
    FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - interval '1 second' * %s
    ORDER BY prepared LIMIT 20
"""
_POSTGRESQL_SLOTS: Final = """
    SELECT slot_name, CASE WHEN active THEN 'active' ELSE 'inactive' END,
        greatest(coalesce(age(xmin), 0), coalesce(age(catalog_xmin), 0))
    FROM pg_replication_slots WHERE age(xmin) > %s OR (NOT active AND age(catalog_xmin) > %s)
    LIMIT 20
"""
_POSTGRESQL_DEAD: Final = """
    SELECT s.relname, s.n_live_tup, s.n_dead_tup,
        extract(epoch FROM clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)),
        coalesce(c.reloptions::text, '') LIKE '%%autovacuum_enabled=false%%'
            OR coalesce(c.reloptions::text, '') LIKE '%%autovacuum_enabled=off%%'
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    WHERE s.relname LIKE 'once\\_%%' AND pg_table_is_visible(s.relid)
"""
_MYSQL_OPEN: Final = """
    SELECT t.trx_mysql_thread_id, coalesce(p.user, ''), coalesce(p.host, ''), t.trx_state,
        timestampdiff(SECOND, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')),
        t.trx_rows_locked
    FROM information_schema.innodb_trx t
    LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
    WHERE t.trx_started <= convert_tz(utc_timestamp(), '+00:00', 'SYSTEM') - INTERVAL %s SECOND
        AND t.trx_mysql_thread_id <> connection_id()
    ORDER BY t.trx_started LIMIT 20
"""


# What a person may send; nobody sends it here.
END_SESSION: Final = {
    "postgresql": "SELECT pg_terminate_backend({pid})", "mysql": "KILL {pid}",
    "prepared": "ROLLBACK PREPARED '{pid}'",
}  # fmt: skip
DROP_SLOT: Final = "SELECT pg_drop_replication_slot('{name}')"
VACUUM_SERVER: Final = "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()"
VACUUM_TABLE: Final = "ALTER TABLE {name} RESET (autovacuum_enabled)"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that has been open for long: whose it is, and how far back it holds rows."""

    pid: str
    user: str
    application: str
    state: str
    seconds: float
    age: int


@dataclass(frozen=True, slots=True)
class Table:
    """One of our tables: how many rows live and are dead, and when it was last cleaned."""

    name: str
    live: int
    dead: int
    seconds_since_vacuum: float | None
    is_never_vacuumed: bool


def long_transactions(connection: Any, seconds: float) -> list[Transaction]:
    """Return what has been open for longer than this, the oldest first; SQLite cannot say."""
    if connection.vendor == "postgresql":
        rows = _asked(connection, _POSTGRESQL_OPEN, [seconds])
        rows += [(gid, owner, "", "prepared", age, 0) for gid, owner, age in
                 _asked(connection, _POSTGRESQL_PREPARED, [seconds])]  # fmt: skip
    elif connection.vendor == "mysql":
        rows = _asked(connection, _MYSQL_OPEN, [seconds])
    else:
        return []
    return [
        Transaction(str(pid), str(user), str(application), str(state), float(age), int(held))
        for pid, user, application, state, age, held in rows
    ]


def sees_everybody(connection: Any) -> bool:
    """Return whether this user is told of other users' transactions; MySQL refuses else."""
    if connection.vendor != "postgresql":
        return True
    ((is_told,),) = _asked(
        connection, "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"
    )
    return bool(is_told)


def old_slots(connection: Any, transactions: int) -> list[tuple[str, str, int]]:
    """Return replication slots that hold back more than so many transactions (PostgreSQL)."""
    if connection.vendor != "postgresql":
        return []
    rows = _asked(connection, _POSTGRESQL_SLOTS, [transactions, transactions])
    return [(str(name), str(state), int(age)) for name, state, age in rows]


def horizon_seconds(connection: Any) -> float | None:
    """Return how long the oldest open transaction has been open, or None where nobody can say."""
    if connection.vendor == "sqlite":
        return None
    return max((one.seconds for one in long_transactions(connection, 0.0)), default=0.0)


def tables(connection: Any) -> list[Table]:
    """Return how our tables stand; only PostgreSQL keeps dead rows among the living."""
    if connection.vendor != "postgresql":
        return []
    return [
        Table(name, int(live), int(dead), None if age is None else float(age), bool(is_never))
        for name, live, dead, age, is_never in _asked(connection, _POSTGRESQL_DEAD)
        if name in TABLES or name.startswith("once_")
    ]


def vacuums(connection: Any) -> bool:
    """Return whether the server cleans its tables by itself."""
    if connection.vendor != "postgresql":
        return True
    ((setting,),) = _asked(connection, "SHOW autovacuum")
    return bool(setting == "on")


def _asked(connection: Any, question: str, parameters: Any = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(question, parameters or [])
        return list(cursor.fetchall())
