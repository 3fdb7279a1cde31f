"""`once retry`: ended jobs run again, with fresh budgets."""

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
from django_once.management.steering import in_words, logged_in_shell, retry_jobs
from django_once.models.job.look import FAILED, SUCCESSFUL

RETRY = Verb("retry", "Retried", (FAILED, SUCCESSFUL), (FAILED,))


def add_arguments(parser: CommandParser) -> None:
    """Declare which jobs."""
    add_choice(parser, RETRY)
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Retry what is meant and ended; the exit status says whether all of it was."""
    choice, status = chosen(screen, options, RETRY)
    if options["dry_run"]:
        return preview(screen, choice, RETRY) or status
    jobs = sum(one.count for one in choice)
    if not is_agreed(screen, options, RETRY, jobs):
        return PROBLEM
    asked = retried = 0
    bar = screen.progress("Retrying", jobs)
    for one in choice:
        before = retried
        with logged_in_shell(one.place.database, "retry", "jobs", in_words(options)) as log:
            for page in one.pages():
                asked += len(page)
                retried += retry_jobs(one.place.backends, one.place.database, page)
                bar.advance(len(page))
            log.tell(f"{counted(retried - before)} retried.", retried - before)
    bar.end()
    left = asked - retried
    if screen.is_json:
        screen.json({"retried": retried, "not_ended": left})
    else:
        others = f" {counted(left).capitalize()} had not ended, or ran just now." if left else ""
        screen.say(f"Retried {counted(retried)}.{others}", "SUCCESS" if retried else "")
    return PROBLEM if left and options["ids"] else status or OK
