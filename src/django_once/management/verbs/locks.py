"""`once locks`: who holds what, and who held it; and taking a lock from who will not give it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once import events
from django_once.locks.place import checked_name
from django_once.management.places import OK, PROBLEM, USAGE, add_backend, places
from django_once.management.screen import Cell, Column, Screen, add_json, ago, length
from django_once.management.steering import logged_in_shell, shell_user
from django_once.models import Lock
from django_once.models.lock import HELD, LAPSED, end_by_force, holders_of, known, look, state_of
from django_once.sql.lines import close_idle, line

WATCHES: Final = True
ROLES: Final = {HELD: "SUCCESS", LAPSED: "WARNING"}
LONGEST_REASON: Final = 255
COLUMNS: Final = (
    Column("NAME"), Column("STATE"), Column("HOLDER"), Column("FENCE", is_number=True),
    Column("ACQUIRED", is_number=True), Column("LEASE", is_number=True), Column("RELEASED"),
)  # fmt: skip
HISTORY: Final = (
    Column("NAME"), Column("FENCE", is_number=True), Column("HOLDER"), Column("ACQUIRED"),
    Column("ENDED"), Column("END"), Column("WHY"),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare what to show, or which lock to take away."""
    add = parser.add_argument
    add("action", nargs="?", choices=("release",), help="release: take a lock from its holder")
    add("name", nargs="?", metavar="NAME", help="the name of one lock")
    add("--all", action="store_true", help="show free locks too")
    add("--history", action="store_true", help="show who held them, the last first")
    add("--reason", default="", metavar="TEXT", help="why it is taken away; kept with the lock")
    add("--yes", "-y", action="store_true", help="do not ask")
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show the locks, or release one."""
    if options["action"] == "release":
        return _release(screen, options)
    databases = [place.database for place in places(options["backend"])]
    shows_all = options["all"] or options["history"]
    found = [lock for database in databases for lock in known(database, only_held=not shows_all)]
    if options["history"]:
        return _show_history(screen, found)
    if screen.is_json:
        screen.json({"locks": [_row(lock) for lock in found]})
    elif found:
        screen.table(COLUMNS, [_cells(lock) for lock in found])
    else:
        screen.say("No lock is held.")
    return OK


def _release(screen: Screen, options: dict[str, Any]) -> int:
    reason = options["reason"].strip()
    if not options["name"] or not reason:
        raise CommandError(
            "Say which lock and why: once locks release NAME --reason TEXT", returncode=USAGE
        )
    if len(reason) > LONGEST_REASON:
        raise CommandError(
            f"--reason has at most {LONGEST_REASON} characters, got {len(reason)}.",
            returncode=USAGE,
        )
    name = checked_name(options["name"])
    for place in places(options["backend"]):
        with _own_line(place.database) as connection:
            standing = look(connection, name)
        if standing is not None and standing.is_held:
            return _taken_away(screen, options, place.database, name, standing.holder, reason)
    screen.tell(f"Nobody holds lock {name!r}.")
    return PROBLEM


def _taken_away(
    screen: Screen, options: dict[str, Any], database: str, name: str, holder: str, reason: str
) -> int:
    if not options["yes"] and not screen.ask(f"Take lock {name!r} from {holder!r}?"):
        screen.say("Nothing was changed.")
        return PROBLEM
    by = shell_user()
    with logged_in_shell(database, "release", "lock", name, reason=reason) as log:
        with _own_line(database) as connection:
            was_taken = end_by_force(connection, name, by, reason)
        log.tell("Taken from its holder." if was_taken else "Released meanwhile.", int(was_taken))
    if not was_taken:
        screen.tell(f"Lock {name!r} was released meanwhile.")
        return PROBLEM
    events.lock_broken(name, by, reason)
    if screen.is_json:
        screen.json({"released": name, "holder": holder, "by": by, "reason": reason})
    else:
        screen.say(f"Took lock {name!r} from {holder!r}, which finds it lost.", "SUCCESS")
    return OK


@contextmanager
def _own_line(database: str) -> Iterator[Any]:
    """Lend a connection for one statement, and leave none behind: no lock is held here."""
    try:
        with line(database) as connection:
            yield connection
    finally:
        close_idle(database, 0.0)


def _show_history(screen: Screen, locks: list[Lock]) -> int:
    holdings = [
        {"name": lock.name, **holding, "by": holding.get("by", ""),
         "reason": holding.get("reason", "")}
        for lock in locks for holding in [*_unended(lock), *holders_of(lock)]
    ]  # fmt: skip
    holdings.sort(key=lambda holding: holding["acquired_at"], reverse=True)
    if screen.is_json:
        screen.json({"holdings": holdings})
    elif holdings:
        rows = [
            [one["name"], str(one["fence"]), one["holder"], one["acquired_at"],
             one["ended_at"] or "–", one["end"], f"{one['by']} {one['reason']}".strip()]
            for one in holdings
        ]  # fmt: skip
        screen.table(HISTORY, rows)
    else:
        screen.say("Nobody ever took a lock.")
    return OK


def _unended(lock: Lock) -> list[dict[str, Any]]:
    state = state_of(lock, _now(lock))
    if state not in (HELD, LAPSED):
        return []
    told = {"holder": lock.holder, "fence": lock.fence, "acquired_at": _written(lock.acquired_at)}
    has_lapsed = state == LAPSED
    ended_at = _written(lock.expires_at) if has_lapsed else None
    return [{**told, "ended_at": ended_at, "end": "expired" if has_lapsed else "held"}]


def _row(lock: Lock) -> dict[str, Any]:
    names = ("name", "holder", "fence", "acquired_at", "renewed_at", "expires_at", "released_at",
             "released_by", "reason")  # fmt: skip
    row = {name: getattr(lock, name) for name in names}
    return {**row, "state": state_of(lock, _now(lock)), "holders": json.loads(lock.history)}


def _cells(lock: Lock) -> list[Cell | str]:
    now, state = _now(lock), state_of(lock, _now(lock))
    left = (lock.expires_at - now).total_seconds() if lock.expires_at else 0.0
    over = f"over for {length(-left)}"
    lease = "–" if state not in (HELD, LAPSED) else length(left) if left > 0 else over
    released = f"{ago(lock.released_at, now)} {lock.reason}".strip()
    return [
        lock.name, Cell(state, ROLES.get(state, "")), lock.holder, str(lock.fence),
        ago(lock.acquired_at, now), lease, released,
    ]  # fmt: skip


def _now(lock: Any) -> datetime:
    now: datetime = lock.now
    return now


def _written(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
