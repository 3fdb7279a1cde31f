"""What a server does: its clock, whether wakeups come through, who holds old rows, what is dead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections

from django_once import clock
from django_once.backend import DatabaseBackend
from django_once.management.doctor.finding import NOTE, OK, WARNING, Finding
from django_once.management.screen import length
from django_once.models.job import look
from django_once.sql import health
from django_once.wakeups.listen import Listener

LARGEST_SKEW: Final = 2.0
MANY_TRANSACTIONS: Final = 1_000_000
MANY_DEAD: Final = 10_000


def findings(database: str, backends: list[DatabaseBackend], long: float) -> Iterator[Finding]:
    """Yield what is found of a server that answers."""
    yield _clock(database)
    yield from _wakeup(database, backends)
    yield from _transactions(database, long)
    yield from _dead(database)


def _clock(database: str) -> Finding:
    before = clock.unmoved_host_now()
    theirs = look.now(database)
    after = clock.unmoved_host_now()
    # The answer was given somewhere between the two looks.
    ahead = (theirs - after).total_seconds(), (theirs - before).total_seconds()
    skew = max(0.0, ahead[0]) or min(0.0, ahead[1])
    evidence = {"skew_seconds": round(skew, 3)}
    if abs(skew) <= LARGEST_SKEW:
        return Finding("clock", OK, f"The clocks of this host and of {database!r} agree",
                       evidence=evidence)  # fmt: skip
    word = "ahead of" if skew > 0 else "behind"
    return Finding(
        "clock", WARNING,
        f"The clock of database {database!r} is {length(abs(skew))} {word} that of this host",
        "Leases and schedules go by the database's clock and are not harmed, but the moments in "
        "logs do not agree: let both be set by NTP, and see which of them is wrong.",
        evidence,
    )  # fmt: skip


def _wakeup(database: str, backends: list[DatabaseBackend]) -> Iterator[Finding]:
    connection: Any = connections[database]
    if connection.vendor != "postgresql":
        return
    if all(backend.settings.wakeup == "poll" for backend in backends):
        yield Finding("wakeup", OK, f"Workers of {database!r} poll, as WAKEUP says")
        return
    listener = Listener(database)
    try:
        is_heard = listener.open()
    except Exception as error:  # noqa: BLE001 - the driver's errors are not Django's here
        yield Finding(
            "wakeup", WARNING, f"{database!r} refused a LISTEN: {str(error).strip()}",
            "Workers poll until it works. Allow one more connection for each worker process.",
        )  # fmt: skip
        return
    finally:
        listener.close()
    if is_heard:
        yield Finding("wakeup", OK, f"A NOTIFY through {database!r} was heard by a LISTEN")
    elif listener.is_swallowed:
        yield Finding(
            "pooler", WARNING,
            f"A pooler in transaction mode stands before {database!r}: it took LISTEN and forgot "
            "it, so workers poll",
            "Jobs start up to POLL later. Give the workers an alias that goes past the pooler, or "
            "set OPTIONS['WAKEUP'] to 'poll' if that is meant.",
        )  # fmt: skip
    else:
        yield Finding(
            "wakeup", WARNING, f"The driver of {database!r} has no LISTEN, so workers poll",
            "Install psycopg 3: pip install 'django-once[postgres]'",
        )  # fmt: skip


def _transactions(database: str, long: float) -> Iterator[Finding]:
    connection: Any = connections[database]
    try:
        found = health.long_transactions(connection, long)
        slots = health.old_slots(connection, MANY_TRANSACTIONS)
        sees_everybody = health.sees_everybody(connection)
    except (DatabaseError, InterfaceError) as error:
        says = f"{database!r} does not say who has a transaction open: {str(error).strip()}"
        yield Finding("transactions", NOTE, says, "Grant its user pg_monitor, or PROCESS.")
        return
    for one in found:
        who = f"{one.user or 'somebody'}{f' ({one.application})' if one.application else ''}"
        kind = one.state if one.state in health.END_SESSION else connection.vendor
        end = health.END_SESSION[kind].format(pid=one.pid)
        yield Finding(
            "transactions", WARNING,
            f"A transaction on {database!r} has been open for {length(one.seconds)}: process "
            f"{one.pid} of {who}, {one.state}. Dead rows of the queue stay until it ends",
            f"End it there, or with: {end}. Set idle_in_transaction_session_timeout.",
            {"pid": one.pid, "user": one.user, "application": one.application,
             "state": one.state, "seconds": round(one.seconds, 1), "age": one.age},
        )  # fmt: skip
    for name, state, age in slots:
        yield Finding(
            "transactions", WARNING,
            f"Replication slot {name!r} ({state}) holds back {age:,} transactions of {database!r}",
            f"Let its reader go on, or: {health.DROP_SLOT.format(name=name)}",
            {"slot": name, "age": age},
        )  # fmt: skip
    if not sees_everybody:
        yield Finding(
            "transactions", NOTE,
            f"{database!r} tells {connection.settings_dict['USER']!r} nothing of what other users "
            "have open",
            f"GRANT pg_read_all_stats TO {connection.settings_dict['USER']}",
        )  # fmt: skip
    if not found and not slots and connection.vendor != "sqlite":
        yield Finding("transactions", OK, f"No transaction on {database!r} is old")


def _dead(database: str) -> Iterator[Finding]:
    tables = health.tables(connections[database])
    bad = 0
    if not health.vacuums(connections[database]):
        yield Finding(
            "vacuum", WARNING, f"Autovacuum is off on the server of {database!r}",
            health.VACUUM_SERVER,
        )  # fmt: skip
    for one in tables:
        if one.is_never_vacuumed:
            bad += 1
            yield Finding(
                "vacuum", WARNING, f"Autovacuum is off for {one.name} on {database!r}",
                health.VACUUM_TABLE.format(name=one.name),
                {"table": one.name, "dead": one.dead, "live": one.live},
            )  # fmt: skip
        elif one.dead > max(MANY_DEAD, one.live):
            bad += 1
            since = one.seconds_since_vacuum
            last = "never" if since is None else f"{length(since)} ago"
            yield Finding(
                "dead rows", WARNING,
                f"{one.name} on {database!r} has {one.dead:,} dead rows beside {one.live:,} "
                f"living; it was last vacuumed {last}",
                f"VACUUM {one.name}; if they stay, a transaction holds them. Else lower "
                "autovacuum_vacuum_scale_factor for this table.",
                {"table": one.name, "dead": one.dead, "live": one.live},
            )  # fmt: skip
    if tables and not bad:
        dead = sum(one.dead for one in tables)
        yield Finding("dead rows", OK, f"{dead:,} dead rows in {database!r}, which is few")
