"""What becomes of the work: queues without workers, lapsed leases, schedules that never fire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections

from django_once.backend import DatabaseBackend
from django_once.management.doctor.finding import NOTE, OK, WARNING, Finding
from django_once.management.screen import length
from django_once.management.verbs.schedules import state_of as state_of_schedule
from django_once.management.verbs.status import picture_of
from django_once.models import Schedule, Worker
from django_once.models.job import look
from django_once.models.pause.stop import pauses
from django_once.models.schedule import edit
from django_once.models.worker import seen, state_of

# A fail-over that is planned takes no longer than this on a managed server.
SHORTEST_SAFE: Final = timedelta(seconds=15)
# A keeper renews at a third of the lease; three times as late is too late.
RENEWALS: Final = 3
LATE: Final = timedelta(minutes=1)


def findings(database: str, backends: list[DatabaseBackend]) -> Iterator[Finding]:
    """Yield what is found of the jobs, workers and schedules of a database."""
    now = look.now(database)
    for backend in backends:
        yield from _queues(backend, now)
        yield from _leases(backend, now)
    yield from _pauses(database, backends)
    yield from _schedules(database, now)


def _queues(backend: DatabaseBackend, now: datetime) -> Iterator[Finding]:
    picture = picture_of(backend, now)
    for sentence in picture.problems:
        says, _, remedy = sentence.rpartition(". ")
        yield Finding("work", WARNING, says, remedy, {"backend": backend.alias})
    if not picture.problems:
        alive = picture.workers["alive"]
        yield Finding("work", OK, f"Nothing of backend {backend.alias!r} waits in vain",
                      evidence={"workers": alive})  # fmt: skip


def _leases(backend: DatabaseBackend, now: datetime) -> Iterator[Finding]:
    lease = backend.settings.lease
    alive = [one for one in seen(backend.settings.database, [backend.alias])
             if state_of(one, now) == "alive"]  # fmt: skip
    behind = max((_behind(one, now) for one in alive), default=timedelta(0))
    safe = max(SHORTEST_SAFE, RENEWALS * behind)
    evidence = {"lease_seconds": lease.total_seconds(), "safe_seconds": safe.total_seconds()}
    place = f"TASKS[{backend.alias!r}]['OPTIONS']['LEASE']"
    if lease < safe:
        yield Finding(
            "lease length", WARNING,
            f"{place} is {length(lease.total_seconds())}: a database that is away for as long, "
            "as in a fail-over, loses every worker at once",
            f"Set it to {length(safe.total_seconds())} or longer; 60s is the default.", evidence,
        )  # fmt: skip
    else:
        told = f"{length(lease.total_seconds())}, and {length(safe.total_seconds())} would be safe"
        yield Finding("lease length", OK, f"{place} is {told}", evidence=evidence)
    yield from _waits_longer(backend, place, lease)


def _behind(worker: Worker, now: datetime) -> timedelta:
    """Return how long ago a worker renewed its lease."""
    since: datetime = worker.renewed_at or worker.started_at
    return now - since


def _waits_longer(backend: DatabaseBackend, place: str, lease: timedelta) -> Iterator[Finding]:
    connection: Any = connections[backend.settings.database]
    if connection.vendor != "sqlite":
        return
    wait = float(connection.settings_dict["OPTIONS"].get("timeout", 5.0))
    if wait >= lease.total_seconds():
        yield Finding(
            "lease length", WARNING,
            f"A statement on SQLite may wait {wait:g} s for the right to write, and {place} is "
            f"{length(lease.total_seconds())}: a renewal that waits so long comes too late",
            f"Lower DATABASES[{connection.alias!r}]['OPTIONS']['timeout'] to a third of the lease.",
        )  # fmt: skip


def _pauses(database: str, backends: list[DatabaseBackend]) -> Iterator[Finding]:
    for one in pauses(database, [backend.alias for backend in backends]):
        until = f"until {one.until:%Y-%m-%d %H:%M} UTC" if one.until else "until it is resumed"
        yield Finding(
            "pauses", NOTE, f"{one.kind} {one.name!r} of backend {one.backend!r} is paused {until}",
            f"When it may go on: python manage.py once resume {one.kind} {one.name}",
            {"by": one.paused_by, "reason": one.reason},
        )  # fmt: skip


def _schedules(database: str, now: datetime) -> Iterator[Finding]:
    found = edit.every(database)
    bad = 0
    for schedule in found:
        says, remedy = _of_schedule(schedule, now)
        if says:
            bad += 1
            evidence = {"schedule": schedule.name, "next_due_at": schedule.next_due_at}
            says = f"Schedule {schedule.name!r} {says}"
            yield Finding("schedules", WARNING, says, remedy, evidence)
    if found and not bad:
        yield Finding("schedules", OK, f"{len(found)} schedules of {database!r} fire")


def _of_schedule(schedule: Schedule, now: datetime) -> tuple[str, str]:
    """Return why a schedule does not fire, and what to do; nothing for one that does."""
    name = schedule.name
    match state_of_schedule(schedule, now):
        case "broken":
            return f"cannot be decided: {schedule.problem}", "Correct its rule, task or arguments."
        case "orphaned":
            return (
                "is declared by no code of this project",
                "Deploy the code that declares it, or delete the row in the admin.",
            )
        case "over" if schedule.next_due_at is None and not schedule.ends_at:
            return "names no moment that will ever come", f"See: once schedules preview {name}"
        case "over" | "disabled":
            return "", ""
        case "paused" if schedule.paused_until is None:
            return (
                f"is paused until it is resumed. Why: {schedule.pause_reason or 'nobody said'}",
                f"python manage.py once schedules resume {name}",
            )
        case "active" if schedule.fires_at is not None and now - schedule.fires_at > LATE:
            late = length((now - schedule.fires_at).total_seconds())
            return (
                f"should have fired {late} ago, and nobody did it",
                "Start a worker without --no-scheduler, or: python manage.py once scheduler",
            )
    return "", ""
