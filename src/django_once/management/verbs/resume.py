"""`once resume`: let a queue, a task or a key go on; what was paused runs in its order.

A breaker that is open is closed by it, before its trial would.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_once.management.places import OK, PROBLEM, add_backend, places
from django_once.management.screen import Screen, add_json
from django_once.management.steering import logged_in_shell
from django_once.management.verbs.pause import BREAKER, add_what, meant
from django_once.models.pause.stop import KINDS, resume
from django_once.models.tally.breaker import close


def add_arguments(parser: CommandParser) -> None:
    """Declare what is to go on."""
    add_what(parser, (*KINDS, BREAKER))
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Resume what is meant; the exit status says whether it was paused."""
    kind, name = meant(options)
    was_paused = False
    for place in places(options["backend"]):
        for backend in place.backends:
            if _gone_on(place.database, backend.alias, kind, name):
                was_paused = True
                backend.announce(is_ready=True)
    if screen.is_json:
        screen.json({"kind": kind, "name": name, "resumed": was_paused})
    elif was_paused:
        screen.say(f"Resumed {kind} {name!r}.", "SUCCESS")
    else:
        was_not = "open" if kind == BREAKER else "paused"
        screen.tell(f"{kind.capitalize()} {name!r} was not {was_not}.")
    return OK if was_paused else PROBLEM


def _gone_on(database: str, backend: str, kind: str, name: str) -> bool:
    with logged_in_shell(database, "resume", kind, name, backend=backend) as log:
        if kind == BREAKER:
            has_gone_on = close(database, backend, name)
        else:
            has_gone_on = resume(database, backend, kind, name)
        log.tell("It goes on." if has_gone_on else "It was not stopped.", int(has_gone_on))
    return has_gone_on
