"""`once jobs`: which jobs there are, the newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once.management import rows
from django_once.management.places import OK, USAGE, add_backend, places
from django_once.management.screen import Cell, Column, Screen, add_json, ago, written_json
from django_once.management.selection import add_filters, wanted
from django_once.models import Job
from django_once.models.job import look
from django_once.redaction import shown

ROLES: Final = {"failed": "ERROR", "successful": "SUCCESS", "running": "WARNING"}
WATCHES: Final = True
LONGEST_SHOWN: Final = 120
LIMIT: Final = 50


def add_arguments(parser: CommandParser) -> None:
    """Declare the filters."""
    add_filters(parser, look.STATES)
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help="so many at most")
    parser.add_argument("--args", action="store_true", dest="payload", help="show arguments too")
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show what is asked for."""
    limit = options["limit"]
    if limit < 1:
        raise CommandError(f"--limit must be at least 1, got {limit}.", returncode=USAGE)
    meant = wanted(options)
    found: list[tuple[Job, datetime]] = []
    where = places(options["backend"])
    for place in where:
        now = look.now(place.database)
        jobs = look.newest(place.database, meant, limit + 1, payload=options["payload"])
        found += [(job, now) for job in jobs]
    if len(where) > 1:
        found.sort(key=lambda one: look.rank(one[0], meant))
    has_more = len(found) > limit
    found = found[:limit]
    if screen.is_json:
        shown = [rows.of_job(job, with_payload=options["payload"]) for job, _ in found]
        screen.json({"jobs": shown, "more": has_more})
        return OK
    if not found:
        screen.say("No job matches.")
        return OK
    _table(screen, found, options["payload"])
    if has_more:
        screen.say(f"… and more: --limit {limit * 2} shows them, filters choose among them.")
    return OK


def _table(screen: Screen, found: list[tuple[Job, datetime]], with_payload: bool) -> None:
    columns = [
        Column("ID"), Column("STATE"), Column("TASK", is_cut=True), Column("QUEUE", spare=1),
        Column("ATTEMPT", is_number=True, spare=3), Column("ENQUEUED", is_number=True, spare=2),
        Column("ENDED", is_number=True), Column("WORKER", is_cut=True, spare=4),
    ]  # fmt: skip
    if with_payload:
        columns.append(Column("ARGUMENTS"))
    screen.table(columns, [_row(job, now, with_payload) for job, now in found])


def _row(job: Job, now: datetime, with_payload: bool) -> list[Cell | str]:
    state = look.state_of(job)
    row: list[Cell | str] = [
        str(job.pk),
        Cell(look.told_state(job), ROLES.get(state, "")),
        job.task,
        job.queue,
        f"{job.attempt}/{job.max_attempts}",
        ago(job.enqueued_at, now),
        ago(job.finished_at, now),
        job.worker_name,
    ]
    if with_payload:
        told = shown(job)
        text = f"{written_json(told.args)} {written_json(told.kwargs)}"
        row.append(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")
    return row
