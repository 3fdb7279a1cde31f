"""`once channels`: who hears what, what waits, and whether the triggers are as they should be."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once.channels import installing, replay, rows
from django_once.definitions.channel import (
    BaseChannel,
    TriggerChannel,
    Words,
    channels,
    located,
    name_of,
    words_of,
)
from django_once.definitions.listeners import events_heard, listeners_of
from django_once.management.places import OK, PROBLEM, USAGE, Place, add_backend, places
from django_once.management.screen import Cell, Column, Screen, add_json
from django_once.models import Job
from django_once.models.notification import counts

WATCHES: Final = True
IN_PLACE, MISSING, CHANGED, DISABLED = "in place", "missing", "changed", "disabled"
COLUMNS: Final = (
    Column("CHANNEL", is_cut=True), Column("KIND"), Column("MODEL", is_cut=True, spare=1),
    Column("HEARS", is_cut=True), Column("GROUP"), Column("LISTENERS", is_number=True, spare=2),
    Column("WAITING", is_number=True), Column("RUNNING", is_number=True),
    Column("FAILED", is_number=True), Column("KEPT", is_number=True, spare=3),
    Column("TRIGGERS"),
)  # fmt: skip
ROLES: Final = {IN_PLACE: "", "": ""}


def add_arguments(parser: CommandParser) -> None:
    """Declare what to show, or which channel to replay."""
    add = parser.add_argument
    add("action", nargs="?", choices=("replay",), help="replay: handle kept notifications again")
    add("name", nargs="?", metavar="PATH", help="the channel")
    add("--group", metavar="NAME", help="of one group (default: all)")
    add("--within", metavar="2h", help="only what ended within this time")
    add("--yes", "-y", action="store_true", help="do not ask")
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show the channels, or replay one."""
    if options["action"] == "replay":
        return _replay(screen, options)
    found = [line for place in places(options["backend"]) for line in _lines(place)]
    is_wrong = any(line["triggers"] not in (IN_PLACE, "") for line in found)
    if screen.is_json:
        screen.json({"channels": found})
    elif found:
        screen.table(COLUMNS, [_cells(line) for line in found])
        if is_wrong:
            screen.tell("Triggers follow their channels with: python manage.py migrate")
    else:
        screen.say("No channel is declared.")
    return PROBLEM if is_wrong else OK


def _replay(screen: Screen, options: dict[str, Any]) -> int:
    if not options["name"]:
        raise CommandError("Say which: once channels replay PATH", returncode=USAGE)
    channel = located(options["name"])
    if not options["yes"] and not screen.ask(f"Handle what is kept of {name_of(channel)} again?"):
        screen.say("Nothing was changed.")
        return PROBLEM
    count = replay(channel, group=options["group"], within=options["within"])
    if screen.is_json:
        screen.json({"replayed": count})
    else:
        screen.say(f"{count} notifications are handled again.", "SUCCESS" if count else "")
    return OK


def _lines(place: Place) -> list[dict[str, Any]]:
    """Return a line for each group of the channels of a place, and for what nobody declares."""
    standing = _triggers(place.database)
    lines: list[dict[str, Any]] = []
    for backend in place.backends:
        stored = counts(place.database, backend.alias)
        known: set[str] = set()
        for channel in channels():
            words = words_of(channel)
            if words.backend == backend.alias:
                known |= {words.path_of(group) for group in words.groups}
                lines += [_line(channel, words, group, stored, standing) for group in words.groups]
        lines += [
            _unknown(channel, path, stored)
            for channel, path in sorted({(channel, path) for channel, path, _ in stored})
            if path not in known
        ]
    return lines


def _line(
    channel: type[BaseChannel], words: Words, group: str, stored: dict[tuple[str, str, str], int],
    standing: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    is_of_model = issubclass(channel, TriggerChannel)
    return {
        "channel": words.name,
        "kind": "stored" if words.is_stored else "broadcast",
        "model": rows.model_of(channel)._meta.label if is_of_model else None,
        "events": sorted(events_heard(channel)) if is_of_model else [],
        "group": group,
        "listeners": [_path(one.function) for one in listeners_of(channel, group)],
        "triggers": standing.get(words.name, IN_PLACE) if is_of_model else "",
        **_numbers(words.name, words.path_of(group), stored),
    }


def _unknown(channel: str, path: str, stored: dict[tuple[str, str, str], int]) -> dict[str, Any]:
    return {
        "channel": channel, "kind": "not declared", "model": None, "events": [],
        "group": path.rpartition(":")[2], "listeners": [], "triggers": "",
        **_numbers(channel, path, stored),
    }  # fmt: skip


def _numbers(channel: str, path: str, stored: dict[tuple[str, str, str], int]) -> dict[str, int]:
    named = {
        "waiting": Job.READY, "running": Job.RUNNING, "failed": Job.FAILED, "kept": Job.SUCCESSFUL,
    }  # fmt: skip
    return {name: stored.get((channel, path, status), 0) for name, status in named.items()}


def _triggers(database: str) -> dict[str, str]:
    """Return the channels whose triggers are not as they should be, and how."""
    drift = installing.drift(database)
    found = {trigger.channel: DISABLED for trigger in drift.disabled}
    found |= {trigger.channel: CHANGED for trigger in drift.changed}
    return found | {trigger.channel: MISSING for trigger in drift.missing}


def _cells(line: dict[str, Any]) -> list[Cell | str]:
    return [
        line["channel"],
        line["kind"],
        line["model"] or "",
        ", ".join(line["events"]),
        line["group"],
        str(len(line["listeners"])),
        str(line["waiting"]),
        str(line["running"]),
        Cell(str(line["failed"]), "ERROR" if line["failed"] else ""),
        str(line["kept"]),
        Cell(line["triggers"], ROLES.get(line["triggers"], "ERROR")),
    ]


def _path(function: Any) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
