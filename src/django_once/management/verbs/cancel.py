"""`once cancel`: what waits ends at once, what runs is asked to end."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_once.management.places import OK, PROBLEM, add_backend
from django_once.management.screen import Screen, add_json
from django_once.management.selection import (
    Verb,
    add_choice,
    chosen,
    counted,
    is_agreed,
    preview,
)
from django_once.management.steering import in_words, logged_in_shell
from django_once.models.job.cancel import cancel
from django_once.models.job.look import BLOCKED, READY, RUNNING, SCHEDULED

OPEN = (READY, SCHEDULED, BLOCKED, RUNNING)
CANCEL = Verb("cancel", "Cancelled", OPEN, OPEN)


def add_arguments(parser: CommandParser) -> None:
    """Declare which jobs."""
    add_choice(parser, CANCEL)
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Cancel what is meant and has not ended; the exit status says whether all of it was."""
    choice, status = chosen(screen, options, CANCEL)
    if options["dry_run"]:
        return preview(screen, choice, CANCEL) or status
    jobs = sum(one.count for one in choice)
    if not is_agreed(screen, options, CANCEL, jobs):
        return PROBLEM
    asked = ended = requested = busy = 0
    bar = screen.progress("Cancelling", jobs)
    for one in choice:
        before = ended + requested
        with logged_in_shell(one.place.database, "cancel", "jobs", in_words(options)) as log:
            for page in one.pages():
                answer = cancel(one.place.database, page)
                asked += len(page)
                ended += answer.ended
                requested += answer.requested
                busy += answer.busy
                bar.advance(len(page))
            done = ended + requested - before
            log.tell(f"{counted(done)} cancelled or asked to end.", done)
    bar.end()
    had_ended = asked - ended - requested - busy
    if screen.is_json:
        screen.json(
            {"cancelled": ended, "requested": requested, "busy": busy, "had_ended": had_ended}
        )
    else:
        screen.say(_summary(ended, requested, busy, had_ended), "SUCCESS" if ended else "")
    return PROBLEM if busy or (had_ended and options["ids"]) else status or OK


def _summary(ended: int, requested: int, busy: int, had_ended: int) -> str:
    parts = [f"Cancelled {counted(ended)}."]
    if requested:
        parts.append(f"Asked {requested:,} that {'runs' if requested == 1 else 'run'} to end.")
    if busy:
        parts.append(f"{counted(busy).capitalize()} held by an open transaction: try again.")
    if had_ended:
        parts.append(f"{counted(had_ended).capitalize()} had ended before.")
    return " ".join(parts)
