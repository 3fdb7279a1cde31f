"""What code declares becomes rows, and a deploy changes nothing else.

A name that is free is taken. A row of the same code whose words differ is edited, so what was due
under the old words is fired or recorded first. Everything else is left as it is: a pause, a row
that was made by hand, and the schedules of another service. A schedule that no code declares any
more is fired by nobody; its row stays, and whoever declares it again finds its due moment.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django_once import compat, events, sql
from django_once.definitions import timetable
from django_once.definitions.schedule import Declared
from django_once.errors import OnceError
from django_once.models import Schedule
from django_once.models.schedule import edit
from django_once.schedules import owner
from django_once.scheduling import editing, readings
from django_once.sql.counts import moment_from_now

WORDS: Final = (
    "task", "cron", "every", "timezone", "starts_at", "ends_at", "jitter", "gap", "fold", "args",
    "kwargs", "queue", "priority", "backend", "overlap", "misfire", "catch_up", "expect",
    "retention",
)  # fmt: skip


def sync(database: str) -> list[str]:
    """Bring what this process declares for a database into its rows; return the names refused."""
    declared = {name: one for name, one in timetable.declared().items() if _is_at(one, database)}
    if not declared:
        return []
    known = edit.words_of(database, declared, WORDS)
    now = moment_from_now(sql.on(database))
    edit.add_missing(
        database,
        [
            {**words(one), "name": name, "source": Schedule.CODE, "owner": owner(),
             **editing.plan(one.rule, now)}
            for name, one in declared.items()
            if name not in known
        ],
    )  # fmt: skip
    return [name for name, row in known.items() if not _is_brought(database, declared[name], row)]


def _is_brought(database: str, declared: Declared, row: dict[str, Any]) -> bool:
    """Edit a row of ours whose words differ; False where the name is another's, or it cannot be."""
    said = words(declared)
    if row["source"] == Schedule.CODE and all(row[word] == said[word] for word in WORDS):
        return True
    if row["source"] != Schedule.CODE or row["owner"] != owner():
        events.schedule_name_taken(declared.name, row["source"], row["owner"])
        return False
    try:
        editing.change(database, row["pk"], **said)
    except OnceError as problem:
        events.schedule_broken(declared.name, str(problem))
        return False
    return True


def _is_at(declared: Declared, database: str) -> bool:
    """Return whether a schedule belongs into a database; one without a backend into none."""
    try:
        return home_of(declared) == database
    except (OnceError, compat.InvalidTaskBackend) as problem:
        events.schedule_broken(declared.name, str(problem))
        return False


def home_of(declared: Declared) -> str:
    """Return the database of a declared schedule: of its jobs, or where permits are kept."""
    return readings.home_of(declared.backend) or readings.home()


def words(declared: Declared) -> dict[str, Any]:
    """Return a declaration as the columns of its row."""
    rule, policies = declared.rule, declared.policies
    return {
        "task": declared.task, "cron": rule.cron.text if rule.cron else "",
        "every": _seconds(rule.every), "timezone": declared.timezone, "starts_at": rule.starts,
        "ends_at": rule.ends, "jitter": rule.jitter.total_seconds(), "gap": rule.gap,
        "fold": rule.fold, "args": declared.args, "kwargs": declared.kwargs,
        "queue": declared.queue, "priority": declared.priority, "backend": declared.backend,
        "overlap": policies.overlap, "misfire": policies.misfire,
        "catch_up": _seconds(policies.catch_up), "expect": _seconds(policies.expect),
        "retention": _seconds(policies.retention),
    }  # fmt: skip


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
