"""`once explain ID`: why a job does not run, as the conditions of its claim and the evidence."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_once import calls, redaction
from django_once.management.places import OK, add_backend, places
from django_once.management.screen import Screen, add_json, one_line
from django_once.management.selection import the_job
from django_once.models.job.explain import explain

WATCHES: Final = True


def add_arguments(parser: CommandParser) -> None:
    """Declare which job."""
    parser.add_argument("id", metavar="ID", help="the job's id, or its first four or more digits")
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Explain the job."""
    job = the_job(places(options["backend"]), options["id"])
    found = explain(str(job._state.db), job.pk, calls.of_job)
    assert found is not None, "It was read a moment ago."
    explained = redaction.explained(job, found)
    if screen.is_json:
        screen.json(explained.as_dict())
        return OK
    screen.say(f"Job {job.pk} ({one_line(job.task)}) is {explained.state}", "MIGRATE_HEADING")
    screen.say(f"  {one_line(explained.says)}.", "WARNING")
    screen.say()
    for finding in explained.findings:
        mark, role = ("✓", "SUCCESS") if finding.holds else ("✗", "ERROR")
        screen.say(f"  {mark} {finding.name:<11} {one_line(finding.says)}", role)
    return OK
