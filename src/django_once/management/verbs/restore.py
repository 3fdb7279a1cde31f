"""`once restore`: let struck jobs of a task go on, in their order."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_once.management.places import OK, PROBLEM, add_backend, places
from django_once.management.screen import Screen, add_json
from django_once.management.steering import logged_in_shell
from django_once.management.verbs.strike import add_what, meant, named
from django_once.models.strike.stop import restore
from django_once.redaction import arguments_shown


def add_arguments(parser: CommandParser) -> None:
    """Declare what is to go on."""
    add_what(parser)
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Restore what is meant; the exit status says whether it was struck."""
    task, arguments = meant(options)
    was_struck = False
    for place in places(options["backend"]):
        for backend in place.backends:
            database, alias = place.database, backend.alias
            about = named(task, arguments_shown(task, alias, arguments))
            with logged_in_shell(database, "restore", "task", about, backend=alias) as log:
                is_restored = restore(database, alias, task, arguments)
                log.tell("Restored." if is_restored else "It was not struck.", int(is_restored))
            if is_restored:
                was_struck = True
                backend.announce(is_ready=True)
    if screen.is_json:
        screen.json({"task": task, "arguments": arguments, "restored": was_struck})
    elif was_struck:
        screen.say(f"Restored {named(task, arguments)}.", "SUCCESS")
    else:
        screen.tell(f"{named(task, arguments)} was not struck. See what is: once strike")
    return OK if was_struck else PROBLEM
