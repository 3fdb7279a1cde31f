"""`once show ID`: everything that is known of one job, in the order in which it happened."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_once.management import rows
from django_once.management.places import OK, add_backend, places
from django_once.management.screen import (
    Screen,
    add_json,
    ago,
    one_line,
    printable,
    written,
    written_json,
)
from django_once.management.selection import the_job
from django_once.management.verbs.jobs import ROLES
from django_once.models import Job
from django_once.models.job import look
from django_once.redaction import shown

WATCHES: Final = True
TRACEBACKS = 2


def add_arguments(parser: CommandParser) -> None:
    """Declare which job."""
    parser.add_argument("id", metavar="ID", help="the job's id, or its first four or more digits")
    parser.add_argument(
        "--args", action="store_true", dest="payload", help="show arguments and result too"
    )
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show the job."""
    job = the_job(places(options["backend"]), options["id"])
    with_tracebacks = screen.verbosity >= TRACEBACKS
    if screen.is_json:
        shown = rows.of_job(job, with_payload=options["payload"])
        shown["history"] = rows.of_history(job, with_tracebacks=with_tracebacks)
        shown["meta"] = rows.decoded(job.meta)
        screen.json(shown)
        return OK
    _head(screen, job)
    _events(screen, job, with_tracebacks)
    _payload(screen, job, options["payload"])
    return OK


def _head(screen: Screen, job: Job) -> None:
    screen.say(f"Job {job.pk}", "MIGRATE_HEADING")
    lines = [
        ("task", job.task),
        ("queue", f"{job.queue}, priority {job.priority}, backend {job.backend}"),
        ("delivery", job.delivery),
        (
            "budgets",
            f"attempt {job.attempt} of {job.max_attempts}, {job.failures} failed, "
            f"{job.deaths} of {job.max_deaths} deaths",
        ),
        ("fence", f"{job.fence}, claim {job.claim or '–'}"),
        ("worker", f"{job.worker_name} ({job.worker})" if job.worker else "–"),
        ("timeout", f"{job.timeout:g} s" if job.timeout else ""),
        ("series", f"{job.key}, generation {job.generation}" if job.key else ""),
        ("limit", job.limit_key or ""),
        ("batch", job.batch or ""),
        ("channel", job.channel or ""),
        ("waits for", job.blocked_by),
    ]
    _line(
        screen,
        "state",
        screen.coloured(one_line(look.told_state(job)), ROLES.get(look.state_of(job), "")),
    )
    for name, text in lines:
        if text:
            _line(screen, name, one_line(text))


def _events(screen: Screen, job: Job, with_tracebacks: bool) -> None:
    now = look.now(str(job._state.db))
    screen.say()
    screen.say(f"  {written(job.enqueued_at)}  enqueued ({ago(job.enqueued_at, now)})")
    if job.run_after is not None:
        screen.say(f"  {written(job.run_after)}  not to run before")
    if job.started_at is not None:
        screen.say(f"  {written(job.started_at)}  first started")
    for entry in rows.of_history(job, with_tracebacks=with_tracebacks):
        _entry(screen, entry)
    if job.status == job.RUNNING:
        since = job.last_attempted_at
        told = f"{written(since)}  attempt" if since else "  claimed, attempt"
        screen.say(f"  {told} {job.attempt} on {one_line(job.worker_name)}, running", "WARNING")
    if job.status == job.READY and job.position is None and not job.blocked_by:
        screen.say(f"  {written(job.due_at)}  due ({ago(job.due_at, now)})")
    if job.cancel_requested_at is not None:
        screen.say(f"  {written(job.cancel_requested_at)}  cancel requested")
    if job.expires_at is not None:
        screen.say(f"  {written(job.expires_at)}  expires unless started")
    if job.finished_at is not None:
        by = f" on {one_line(job.worker_name)}" if job.worker_name else ""
        told = f"{one_line(look.told_state(job))}, attempt {job.attempt}{by}"
        screen.say(f"  {written(job.finished_at)}  {told}", ROLES[look.state_of(job)])


def _entry(screen: Screen, entry: dict[str, Any]) -> None:
    by = f" on {entry['worker']}" if entry["worker"] else ""
    number = f"attempt {entry['attempt']}{by}: " if entry["attempt"] else ""
    told = one_line(f"{number}{entry['kind']}, {entry['error']}")
    screen.say(f"  {written(entry['at'])}  {told}", "ERROR")
    if entry["traceback"]:
        for line in entry["traceback"].splitlines():
            screen.say(f"      {printable(line)}")


def _payload(screen: Screen, job: Job, is_shown: bool) -> None:
    screen.say()
    if not is_shown:
        screen.say("  Arguments and result are hidden: --args shows them, -v 2 shows tracebacks.")
        return
    told = shown(job)
    _line(screen, "args", printable(written_json(told.args)))
    _line(screen, "kwargs", printable(written_json(told.kwargs)))
    result = "–" if job.return_value is None else printable(written_json(told.return_value))
    _line(screen, "result", result)


def _line(screen: Screen, name: str, text: str) -> None:
    screen.say(f"  {name:<10} {text}")
