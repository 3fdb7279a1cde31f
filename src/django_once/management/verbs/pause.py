"""`once pause`: let nothing of a queue, a task or a key start, and say why; or list what is paused.

What runs goes on to its end. A pause survives restarts and deploys, until somebody resumes or its
time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once import clock
from django_once.definitions import registry
from django_once.errors import InvalidOption
from django_once.management.places import OK, USAGE, add_backend, places
from django_once.management.screen import Column, Screen, add_json, ago, one_line, written
from django_once.management.steering import logged_in_shell, shell_user
from django_once.models import Pause
from django_once.models.job import look
from django_once.models.pause.stop import KINDS, pause, pauses

WATCHES: Final = True
LONGEST: Final = 255
# What may be closed like a pause is ended.
BREAKER: Final = "breaker"
COLUMNS: Final = (
    Column("KIND"), Column("NAME"), Column("BACKEND"), Column("SINCE", is_number=True),
    Column("UNTIL"), Column("BY"), Column("REASON"),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare what to pause, why and until when."""
    add_what(parser, nargs="?")
    add = parser.add_argument
    add("--reason", default="", metavar="TEXT", help="why; shown wherever somebody asks")
    add("--until", metavar="WHEN", help="end by itself: after a duration, or at a moment of ISO")
    add_backend(parser)
    add_json(parser)


def add_what(parser: CommandParser, kinds: Sequence[str] = KINDS, **said: Any) -> None:
    """Declare which queue, task or key is meant."""
    parser.add_argument("kind", choices=kinds, help="what NAME names", **said)
    parser.add_argument("name", metavar="NAME", help="a queue, a task's path, or a key", **said)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Pause what is meant, or list what is paused."""
    if options["kind"] is None:
        return _list(screen, options)
    kind, name = meant(options)
    reason = options["reason"].strip()
    if len(reason) > LONGEST:
        raise CommandError(f"--reason has at most {LONGEST} characters.", returncode=USAGE)
    until = _until(options["until"])
    by = shell_user()
    for place in places(options["backend"]):
        for backend in place.backends:
            database, alias = place.database, backend.alias
            with logged_in_shell(
                database, "pause", kind, name, backend=alias, reason=reason
            ) as log:
                pause(database, alias, kind, name, reason=reason, until=until, by=by)
                log.tell("Paused.")
    if screen.is_json:
        screen.json({"kind": kind, "name": name, "paused": True})
    else:
        screen.say(f"Paused {kind} {name!r}. What runs goes on to its end.", "SUCCESS")
    return OK


def meant(options: dict[str, Any]) -> tuple[str, str]:
    """Return kind and name of what is meant; a task may be named by the end of its path."""
    kind, name = options["kind"], options["name"]
    if not name or len(name) > LONGEST:
        raise CommandError(f"Say which {kind}: once pause {kind} NAME", returncode=USAGE)
    return kind, task_named(name) if kind in (Pause.TASK, BREAKER) else name


def task_named(name: str) -> str:
    """Return the path of a task, which may be named by the end of it."""
    if not name or len(name) > LONGEST:
        raise CommandError("Say which task: its path, or the end of it.", returncode=USAGE)
    if name in registry.paths():
        return name
    ends = [path for path in registry.paths() if path.endswith(f".{name}")]
    if len(ends) > 1:
        raise CommandError(
            f"{name!r} may be {', '.join(sorted(ends))}: say the whole path.", returncode=USAGE
        )
    return ends[0] if ends else name


def _until(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return clock.to_utc(datetime.fromisoformat(text))
    except ValueError:
        pass
    try:
        return clock.duration(text, "--until")
    except InvalidOption as refused:
        raise CommandError(
            f"{refused} Or a moment such as 2030-01-31T18:00.", returncode=USAGE
        ) from None


def _list(screen: Screen, options: dict[str, Any]) -> int:
    found = [
        (place.database, one)
        for place in places(options["backend"])
        for one in pauses(place.database, [backend.alias for backend in place.backends])
    ]
    if screen.is_json:
        screen.json({"pauses": [_row(one) for _, one in found]})
    elif found:
        screen.table(COLUMNS, [_cells(database, one) for database, one in found])
    else:
        screen.say("Nothing is paused.")
    return OK


def _row(one: Pause) -> dict[str, Any]:
    return {
        "kind": one.kind, "name": one.name, "backend": one.backend, "reason": one.reason,
        "until": one.until, "paused_by": one.paused_by, "paused_at": one.paused_at,
    }  # fmt: skip


def _cells(database: str, one: Pause) -> list[str]:
    return [
        one.kind, one_line(one.name), one.backend, ago(one.paused_at, look.now(database)),
        written(one.until) if one.until else "resumed", one_line(one.paused_by),
        one_line(one.reason),
    ]  # fmt: skip
