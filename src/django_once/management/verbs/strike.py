"""`once strike`: let no job of a task with these arguments start, or list what is struck.

What runs goes on to its end. Struck jobs wait until somebody restores them, or end as cancelled
with `--cancel`. A strike survives restarts and deploys.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once import strikes
from django_once.definitions import registry
from django_once.errors import InvalidOption
from django_once.management.places import OK, USAGE, add_backend, places
from django_once.management.screen import Column, Screen, add_json, ago, one_line, written_json
from django_once.management.steering import logged_in_shell, shell_user
from django_once.management.verbs.pause import LONGEST, task_named
from django_once.models import Strike
from django_once.models.job import look
from django_once.models.strike import stop
from django_once.redaction import arguments_shown

WATCHES: Final = True
COLUMNS: Final = (
    Column("TASK"), Column("ARGUMENTS"), Column("THEN"), Column("BACKEND"),
    Column("SINCE", is_number=True), Column("BY"), Column("REASON"),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare what to strike, why, and what becomes of it."""
    add_what(parser, nargs="?")
    parser.add_argument("--cancel", action="store_true", help="end struck jobs when they are met")
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="why; shown wherever somebody asks"
    )
    add_backend(parser)
    add_json(parser)


def add_what(parser: CommandParser, **said: Any) -> None:
    """Declare which jobs are meant."""
    parser.add_argument("task", metavar="TASK", help="a task's path, or the end of it", **said)
    parser.add_argument(
        "arguments", metavar="NAME=VALUE", nargs="*",
        help="an argument that the jobs have; without any, all jobs of the task",
    )  # fmt: skip


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Strike what is meant, or list what is struck."""
    if options["task"] is None:
        return _list(screen, options)
    task, arguments = meant(options)
    outcome = Strike.CANCEL if options["cancel"] else Strike.WAIT
    reason = options["reason"].strip()
    if len(reason) > LONGEST:
        raise CommandError(f"--reason has at most {LONGEST} characters.", returncode=USAGE)
    by = shell_user()
    for place in places(options["backend"]):
        for backend in place.backends:
            database, alias = place.database, backend.alias
            about = named(task, arguments_shown(task, alias, arguments))
            with logged_in_shell(
                database, "strike", "task", about, backend=alias, reason=reason
            ) as log:
                stop.strike(database, alias, task, arguments, outcome=outcome, reason=reason, by=by)
                log.tell("Struck.")
    if screen.is_json:
        screen.json({"task": task, "arguments": arguments, "struck": True})
    else:
        then = "end as cancelled" if options["cancel"] else "wait"
        struck = named(task, arguments)
        screen.say(f"Struck {struck}. Those jobs {then} when they are met.", "SUCCESS")
    return OK


def meant(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the task and the arguments that are meant; a value is JSON, or else text."""
    path = task_named(options["task"])
    given: dict[str, Any] = {}
    for text in options["arguments"]:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise CommandError(
                f"Write an argument as NAME=VALUE, such as tenant_id=7, got {text!r}.",
                returncode=USAGE,
            )
        given[name] = _read(value)
    task = registry.find(path)
    try:
        return path, strikes.checked(task, given) if task is not None else given
    except (InvalidOption, TypeError) as refused:
        raise CommandError(str(refused), returncode=USAGE) from refused


def named(task: str, arguments: dict[str, Any]) -> str:
    """Return what was struck, as a person says it."""
    said = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return one_line(f"{task} with {said}" if said else task)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list(screen: Screen, options: dict[str, Any]) -> int:
    found = [
        (place.database, one)
        for place in places(options["backend"])
        for one in stop.strikes(place.database, [backend.alias for backend in place.backends])
    ]
    if screen.is_json:
        screen.json({"strikes": [_row(one) for _, one in found]})
    elif found:
        screen.table(COLUMNS, [_cells(database, one) for database, one in found])
    else:
        screen.say("Nothing is struck.")
    return OK


def _shown(one: Strike) -> Any:
    return arguments_shown(one.task, one.backend, json.loads(one.arguments))


def _row(one: Strike) -> dict[str, Any]:
    return {
        "task": one.task, "arguments": _shown(one), "outcome": one.outcome,
        "backend": one.backend, "reason": one.reason, "struck_by": one.struck_by,
        "struck_at": one.struck_at,
    }  # fmt: skip


def _cells(database: str, one: Strike) -> list[str]:
    return [
        one_line(one.task), one_line(written_json(_shown(one))), one.outcome, one.backend,
        ago(one.struck_at, look.now(database)), one_line(one.struck_by), one_line(one.reason),
    ]  # fmt: skip
