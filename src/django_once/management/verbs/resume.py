"""`once resume`: let a queue, a task or a key go on; what was paused runs in its order."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_once.management.places import OK, PROBLEM, add_backend, places
from django_once.management.screen import Screen, add_json
from django_once.management.verbs.pause import add_what, meant
from django_once.models.pause.stop import resume


def add_arguments(parser: CommandParser) -> None:
    """Declare what is to go on."""
    add_what(parser)
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Resume what is meant; the exit status says whether it was paused."""
    kind, name = meant(options)
    was_paused = False
    for place in places(options["backend"]):
        for backend in place.backends:
            if resume(place.database, backend.alias, kind, name):
                was_paused = True
                backend.announce(is_ready=True)
    if screen.is_json:
        screen.json({"kind": kind, "name": name, "resumed": was_paused})
    elif was_paused:
        screen.say(f"Resumed {kind} {name!r}.", "SUCCESS")
    else:
        screen.tell(f"{kind.capitalize()} {name!r} was not paused.")
    return OK if was_paused else PROBLEM
