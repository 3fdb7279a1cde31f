"""`once prune`: deletes ended jobs that are older than they are kept, and rows of old workers.

A worker's keeper does the same all the time by RETENTION; this is for who runs none, or wants less.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once.backend import DatabaseBackend
from django_once.management.places import OK, PROBLEM, USAGE, add_backend, places
from django_once.management.screen import Progress, Screen, add_json
from django_once.management.selection import counted, span
from django_once.management.steering import logged_in_shell
from django_once.models.job.prune import BATCH, count_prunable, prune_from
from django_once.models.worker import forget
from django_once.processes.janitor import WORKERS_KEPT
from django_once.sql.endings import ENDED

LARGEST_BATCH: Final = 10_000


@dataclass(frozen=True, slots=True)
class Age:
    """What is old of one backend: how long each status is kept, and how many jobs exceed it."""

    backend: DatabaseBackend
    kept: dict[str, timedelta]
    queue: str
    jobs: int


def add_arguments(parser: CommandParser) -> None:
    """Declare what is old."""
    add = parser.add_argument
    add("--older-than", metavar="7d", help="that ended longer ago (default: what RETENTION says)")
    add(
        "--status",
        choices=ENDED,
        action="append",
        type=str.upper,
        help="that ended like this; may be repeated (default: both)",
    )
    add("--queue", metavar="NAME", default="", help="of this queue")
    add("--batch-size", type=int, default=BATCH, metavar="N", help="so many in one transaction")
    add("--dry-run", action="store_true", help="count, delete nothing")
    add("--yes", "-y", action="store_true", help="do not ask; asked is only with --older-than")
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Delete it, in one short transaction after the other."""
    batch = options["batch_size"]
    if not 1 <= batch <= LARGEST_BATCH:
        raise CommandError(
            f"--batch-size must be from 1 to {LARGEST_BATCH}, got {batch}.", returncode=USAGE
        )
    older_than = span(options["older_than"], "--older-than")
    ages = [
        _age(backend, older_than, options)
        for place in places(options["backend"])
        for backend in place.backends
    ]
    jobs = sum(age.jobs for age in ages)
    if options["dry_run"]:
        return _told(screen, jobs, 0, is_dry=True)
    # What RETENTION says was agreed to when it was written.
    is_asked = older_than is not None and jobs and not options["yes"]
    if is_asked and not screen.ask(f"Delete {counted(jobs)} for ever?"):
        return PROBLEM
    bar = screen.progress("Pruning", jobs)
    deleted = sum(_pruned(age, batch, bar) for age in ages)
    bar.end()
    workers = 0
    if not options["queue"] and not options["status"]:
        workers = sum(_forget(age.backend, batch) for age in ages)
    return _told(screen, deleted, workers, is_dry=False)


def _age(backend: DatabaseBackend, older_than: timedelta | None, options: dict[str, Any]) -> Age:
    kept = {
        status: older_than if older_than is not None else backend.settings.retention[status]
        for status in dict.fromkeys(options["status"] or ENDED)
    }
    queue = options["queue"]
    return Age(
        backend, kept, queue, count_prunable(backend.database, backend.alias, kept, queue=queue)
    )


def _pruned(age: Age, batch: int, bar: Progress) -> int:
    kept = ", ".join(f"{status} {length}" for status, length in age.kept.items())
    about = f"queue:{age.queue} older than {kept}" if age.queue else f"older than {kept}"
    alias = age.backend.alias
    with logged_in_shell(age.backend.database, "prune", "jobs", about, backend=alias) as log:
        deleted = _prune(age, batch, bar)
        log.tell(f"{counted(deleted)} deleted.", deleted)
    return deleted


def _prune(age: Age, batch: int, bar: Progress) -> int:
    deleted = 0
    for status, kept in age.kept.items():
        since = None
        while True:
            pruned = prune_from(
                age.backend.database, age.backend.alias, {status: kept}, batch,
                queue=age.queue, since=since,
            )  # fmt: skip
            deleted, since = deleted + pruned.count, pruned.reached
            bar.advance(pruned.count)
            if pruned.count < batch:
                break
    return deleted


def _forget(backend: DatabaseBackend, batch: int) -> int:
    forgotten = 0
    while True:
        count = forget(backend.database, WORKERS_KEPT, batch, [backend.alias])
        forgotten += count
        if count < batch:
            return forgotten


def _rows(workers: int) -> str:
    if not workers:
        return ""
    if workers == 1:
        return " and 1 row of a worker that is gone"
    return f" and {workers:,} rows of workers that are gone"


def _told(screen: Screen, jobs: int, workers: int, *, is_dry: bool) -> int:
    if screen.is_json:
        screen.json({"dry_run": is_dry, "jobs": jobs, "workers": workers})
    elif is_dry:
        screen.say(f"Would delete {counted(jobs)}.")
    else:
        screen.say(f"Deleted {counted(jobs)}{_rows(workers)}.", "SUCCESS")
    return OK
