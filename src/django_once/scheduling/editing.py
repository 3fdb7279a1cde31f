"""Editing: what was due under the old words is fired or recorded first, then the new words hold.

Each edit is one transaction that holds the schedule's row. So no scheduler fires between the two,
and a moment that was due at two o'clock is not lost because somebody moves it to three at five
past. The next moment changes only if the rule does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django_once import clock, sql
from django_once.definitions import schedule as schedules
from django_once.errors import InvalidOption, OnceError
from django_once.models.schedule import edit
from django_once.models.schedule.due import Due, lock
from django_once.models.schedule.move import record
from django_once.scheduling import SCHEDULES, readings
from django_once.scheduling.firing import fire
from django_once.sql.counts import moment_from_now
from django_once.sql.schedules import Record
from django_once.wakeups.listen import announce

# What says when: a change of one of these names another next moment.
RULE: Final = frozenset(
    {"cron", "every", "timezone", "starts_at", "ends_at", "jitter", "gap", "fold", "name"}
)


class UnknownSchedule(OnceError):
    """A schedule that is not there, or not any more."""


def change(database: str, schedule: UUID, **changes: Any) -> None:
    """Change a schedule, refused as a whole if the new words cannot be meant."""
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        due = _fire_what_was_due(database, due, now)
        if any(getattr(due, name) != changes[name] for name in RULE & set(changes)):
            changes = {**changes, **_planned(due, changes, now)}
        edit.change(database, schedule, {**changes, "problem": ""})
    announce(database, SCHEDULES, is_ready=True)


def add(database: str, **said: Any) -> UUID:
    """Store a schedule of an operator's, planned from now on."""
    id = uuid4()
    now = moment_from_now(sql.on(database))
    rule = readings.rule_said(said)
    edit.add_missing(database, [{"id": id, **said, **plan(rule, now)}])
    stored = edit.find(database, said["name"])
    if stored is None or stored.pk != id:
        raise InvalidOption(f"There is a schedule called {said['name']!r} already.")
    announce(database, SCHEDULES, is_ready=True)
    return id


def plan(rule: schedules.Rule, now: datetime) -> dict[str, Any]:
    """Return the columns of a rule that holds from now on."""
    following = rule.after(now)
    fires_at = None if following is None else rule.fires_at(following)
    return {"rule_since": now, "next_due_at": following, "fires_at": fires_at}


def locked(database: str, schedule: UUID) -> tuple[Due, datetime]:
    """Return a schedule under its lock, and now; waits for whoever holds it."""
    found = lock(database, [schedule])
    if not found:
        raise UnknownSchedule(f"There is no schedule {schedule}: it was deleted.")
    return found[0], moment_from_now(sql.on(database))


def pause(database: str, schedule: UUID, reason: str = "", until: datetime | None = None) -> None:
    """Record what falls due from now on, and run nothing of it, until somebody resumes it."""
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        if until is not None and clock.to_utc(until) <= now:
            raise InvalidOption(f"A pause ends in the future, got {until}.")
        _fire_what_was_due(database, due, now)
        paused = {"paused_at": now, "paused_until": until, "pause_reason": reason[:255]}
        edit.change(database, schedule, paused)


def resume(database: str, schedule: UUID) -> None:
    """Let a schedule run again from now on; what was due until now stays left out."""
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        _fire_what_was_due(database, due, now)
        edit.change(
            database, schedule, {"paused_at": None, "paused_until": None, "pause_reason": ""}
        )


def disable(database: str, schedule: UUID) -> None:
    """Stop a schedule, after what is due now; no deploy starts it again."""
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        _fire_what_was_due(database, due, now)
        edit.change(database, schedule, {"enabled": False})


def enable(database: str, schedule: UUID) -> None:
    """Start a schedule from now on; one record stands for all that was due meanwhile."""
    with sql.transaction_on(database):
        due, now = locked(database, schedule)
        if due.enabled:
            return
        rule = readings.rule_of(due)
        missed = due.next_due_at
        if missed is not None and missed <= now:
            following = rule.after(missed)
            through = now if following is not None and following <= now else None
            record(
                database,
                [Record(id=uuid4(), schedule=due.id, due_at=missed, through=through,
                        status="SKIPPED", reason=schedules.DISABLED, retention=due.retention)],
            )  # fmt: skip
        planned = plan(rule, now) if missed is None or missed <= now else {}
        planned.pop("rule_since", None)
        edit.change(database, schedule, {"enabled": True, "problem": "", **planned})
    announce(database, SCHEDULES, is_ready=True)


def _fire_what_was_due(database: str, due: Due, now: datetime) -> Due:
    """Fire or record all that was due under the words that hold; return the row after that."""
    while due.enabled and due.next_due_at is not None and due.next_due_at <= now:
        before = due.next_due_at
        fire(database, [due], now)
        (due,) = lock(database, [due.id])
        # What jitter puts off, or nobody can read, stays for later.
        if due.next_due_at == before:
            break
    return due


def _planned(due: Due, changes: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    said = {name: changes.get(name, getattr(due, name)) for name in RULE}
    return plan(readings.rule_said(said), now)
