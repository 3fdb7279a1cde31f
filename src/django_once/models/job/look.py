"""Looking at jobs: which ones are meant, how many there are, what stands in their rows.

A table of a million rows must stay readable while it is written to. So arguments and results are
read only when somebody asks for them, counts of what waits stop at a limit and say so, and lists
follow an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections, models
from django.db.models import Q, QuerySet

from django_once import sql
from django_once.clock import Now
from django_once.models.job.row import Job
from django_once.models.worker import Worker
from django_once.sql import counts as sql_counts

READY, SCHEDULED, BLOCKED = "ready", "scheduled", "blocked"
RUNNING, FAILED, SUCCESSFUL = "running", "failed", "successful"
STATES: Final = (READY, RUNNING, FAILED, SUCCESSFUL, SCHEDULED, BLOCKED)
WAITING: Final = (READY, SCHEDULED, BLOCKED)
HAVE_ENDED: Final = (FAILED, SUCCESSFUL)

PAYLOAD: Final = ("args", "kwargs", "return_value")
HEAVY: Final = (*PAYLOAD, "history", "meta")
MOST_COUNTED: Final = 100_000
MOST_LOOKED_AT: Final = 200_000
MOST_SAMPLED: Final = 1_000
_PARTS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
_PREFIX: Final = re.compile(r"[0-9a-f]{4,32}")

# Written as the partial indexes are, so that the planner finds them.
_CONDITIONS: Final = {
    READY: Q(status=Job.READY, position__isnull=False),
    SCHEDULED: Q(status=Job.READY, position__isnull=True, blocked_by=""),
    BLOCKED: Q(status=Job.READY) & ~Q(blocked_by=""),
    RUNNING: Q(status=Job.RUNNING),
    FAILED: Q(status=Job.FAILED, finished_at__isnull=False),
    SUCCESSFUL: Q(status=Job.SUCCESSFUL, finished_at__isnull=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs somebody means; what is left out does not matter.

    `since` looks at the end of jobs where `states` are of jobs that ended, else at their enqueue.
    """

    backends: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    task: str = ""
    queue: str = ""
    worker: str = ""
    reason: str = ""
    since: timedelta | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """So many jobs of one queue in one state; with `due_at` of the one that waits longest."""

    state: str
    queue: str
    jobs: int
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Sample:
    """How long one job that ended had waited when it could run, and how long it ran then."""

    backend: str
    queue: str
    waited: float
    ran: float


def state_of(job: Job) -> str:
    """Return the word for where a job stands: what waits has three, for what it waits."""
    if job.status != Job.READY:
        return {Job.RUNNING: RUNNING, Job.FAILED: FAILED}.get(job.status, SUCCESSFUL)
    if job.blocked_by:
        return BLOCKED
    return SCHEDULED if job.position is None else READY


def told_state(job: Job) -> str:
    """Return where a job stands, with what the word alone does not tell."""
    state = state_of(job)
    if state == BLOCKED:
        return f"{state} ({job.blocked_by})"
    if job.cancel_requested_at is not None and state == RUNNING:
        return f"{state} (cancel requested)"
    return f"{state} ({job.reason})" if job.reason else state


def in_state(state: str) -> Q:
    """Return the condition of this state."""
    return _CONDITIONS[state]


def of_task(name: str) -> Q:
    """Return the condition of a task, named by its path or by the end of it."""
    return Q(task=name) | Q(task__endswith=f".{name}")


def is_id(text: str) -> bool:
    """Return whether a text is an id, or enough of the beginning of one."""
    return bool(_PREFIX.fullmatch(_digits(text)))


def with_id(text: str, database: str) -> Q | None:
    """Return the condition of jobs whose id begins like this, or None if no id does."""
    if not is_id(text):
        return None
    digits = _digits(text)
    if len(digits) == 32:
        return Q(pk=UUID(digits))
    connection = connections[database]
    if connection.vendor == "mysql" and connection.features.has_native_uuid_field:
        # MariaDB orders UUIDs by their version's parts, so that no range is a prefix.
        parts = (digits[begin:end] for begin, end in _PARTS)
        return Q(pk__startswith="-".join(part for part in parts if part))
    return Q(pk__gte=UUID(digits.ljust(32, "0")), pk__lte=UUID(digits.ljust(32, "f")))


def matching(database: str, wanted: Wanted) -> QuerySet[Job]:
    """Return the jobs that are meant, without an order and without what is heavy in them."""
    jobs = Job.objects.using(database).defer(*HEAVY)
    if wanted.backends:
        jobs = jobs.filter(backend__in=wanted.backends)
    if wanted.states:
        either = Q(pk__in=[])
        for state in wanted.states:
            either |= in_state(state)
        jobs = jobs.filter(either)
    if wanted.task:
        jobs = jobs.filter(of_task(wanted.task))
    if wanted.queue:
        jobs = jobs.filter(queue=wanted.queue)
    if wanted.worker:
        jobs = jobs.filter(_of_worker(wanted.worker))
    if wanted.reason:
        jobs = jobs.filter(reason=wanted.reason)
    moment = "finished_at" if _have_all_ended(wanted) else "enqueued_at"
    if wanted.since is not None:
        jobs = jobs.filter(**{f"{moment}__gte": Now() - wanted.since})
    if wanted.until is not None:
        jobs = jobs.filter(**{f"{moment}__lte": wanted.until})
    return jobs


def newest(database: str, wanted: Wanted, most: int, *, payload: bool = False) -> list[Job]:
    """Return so many of the jobs that are meant: those that ended last, wait for the nearest
    moment, or else were enqueued last."""
    jobs = matching(database, wanted)
    if payload:
        jobs = jobs.defer(None).defer("history")
    if _have_all_ended(wanted):
        jobs = jobs.order_by("-finished_at", "-pk")
    elif wanted.states == (SCHEDULED,):
        jobs = jobs.order_by("due_at", "pk")
    else:
        jobs = jobs.order_by("-pk")
    return list(jobs[:most])


def rank(job: Job, wanted: Wanted) -> tuple[float, int]:
    """Return by what `newest` orders, so that jobs of several databases can be put together."""
    if _have_all_ended(wanted):
        assert job.finished_at is not None
        return -job.finished_at.timestamp(), -job.pk.int
    if wanted.states == (SCHEDULED,):
        return job.due_at.timestamp(), job.pk.int
    return 0.0, -job.pk.int


def order_of(state: str) -> str:
    """Return the column that leads through the jobs of this state, or of all: each is indexed."""
    if state in HAVE_ENDED:
        return "-finished_at"
    return "due_at" if state == SCHEDULED else "-pk"


def first_of(jobs: QuerySet[Job], order: str, most: int) -> tuple[QuerySet[Job], bool]:
    """Return the jobs among the first so many in this order, and whether others are left out.

    Whoever then filters by a column without an index walks over these and no more.
    """
    column = order.lstrip("-")
    edge = list(jobs.order_by(order).values_list(column, flat=True)[most : most + 1])
    if not edge:
        return jobs, False
    side = "gt" if order.startswith("-") else "lt"
    return jobs.filter(**{f"{column}__{side}": edge[0]}), True


def ids_in_pages(database: str, wanted: Wanted, size: int) -> Iterator[list[UUID]]:
    """Yield the ids of the jobs that are meant, in order; each is looked at once.

    What is done with a page may take its jobs out of the condition, or bring them back into it.
    """
    jobs = matching(database, wanted).order_by("pk")
    page = list(jobs.values_list("pk", flat=True)[:size])
    while page:
        yield page
        page = list(jobs.filter(pk__gt=page[-1]).values_list("pk", flat=True)[:size])


def by_id(database: str, text: str, most: int = 5) -> list[Job]:
    """Return up to so many whole rows whose id begins like this."""
    condition = with_id(text, database)
    if condition is None:
        return []
    return list(Job.objects.using(database).filter(condition).order_by("pk")[:most])


def carried_by(database: str, job: UUID) -> dict[str, Any]:
    """Return what a job carries beside its arguments; nothing where SQL put no object there."""
    texts = Job.objects.using(database).filter(pk=job).values_list("meta", flat=True)
    try:
        carried = json.loads(next(iter(texts), "{}"))
    except ValueError:
        return {}
    return carried if isinstance(carried, dict) else {}


def counts(database: str, backends: Sequence[str], most: int = MOST_COUNTED) -> list[Count]:
    """Return how many jobs have not ended, by state and queue.

    Each state is counted up to `most` jobs: a sum that reaches it means "at least so many".
    """
    statements = sql.on(database)
    return [
        Count(state, queue, jobs, due_at)
        for state in sql_counts.UNENDED
        for queue, jobs, due_at in sql_counts.by_queue(statements, state, backends, most)
    ]


def ended_lately(
    database: str, backends: Sequence[str], within: timedelta, most: int = MOST_COUNTED
) -> dict[str, int]:
    """Return how many jobs ended within this time, by state; up to a limit, like `counts`."""
    statements = sql.on(database)
    ended = sql_counts.ended_within(statements, within.total_seconds(), backends, most)
    return {FAILED: ended.get(Job.FAILED, 0), SUCCESSFUL: ended.get(Job.SUCCESSFUL, 0)}


def mean_seconds(
    database: str, backend: str, within: timedelta, most: int = MOST_SAMPLED
) -> dict[str, float]:
    """Return how long jobs that ended within this time ran, by queue; by the last of them."""
    ran: dict[str, list[float]] = {}
    for sample in samples(database, [backend], within, most):
        ran.setdefault(sample.queue, []).append(sample.ran)
    return {queue: sum(lengths) / len(lengths) for queue, lengths in ran.items()}


def samples(
    database: str, backends: Sequence[str], within: timedelta, most: int = MOST_SAMPLED
) -> list[Sample]:
    """Return how long the last so many jobs that ended within this time waited and ran."""
    ended = Job.objects.using(database).filter(
        in_state(FAILED) | in_state(SUCCESSFUL),
        backend__in=backends, finished_at__gte=Now() - within, last_attempted_at__isnull=False,
    )  # fmt: skip
    rows: Any = ended.order_by("-finished_at").values_list(
        "backend", "queue", "due_at", "last_attempted_at", "finished_at"
    )[:most]
    return [
        Sample(
            backend, queue,
            # A retry moves `due_at`, so it is that of the last attempt.
            max(0.0, (began - due_at).total_seconds()),
            max(0.0, (ended_at - began).total_seconds()),
        )
        for backend, queue, due_at, began, ended_at in rows
    ]  # fmt: skip


def running_by_worker(database: str) -> dict[UUID | None, int]:
    """Return how many running jobs each worker holds."""
    running = Job.objects.using(database).filter(in_state(RUNNING)).order_by()
    return dict(running.values_list("worker").annotate(jobs=models.Count("pk")))


def count_orphans(database: str, backend: str) -> int:
    """Return how many running jobs stand as those of workers that are gone."""
    living = Worker.objects.using(database).filter(lost_at=None, stopped_at=None)
    running = Job.objects.using(database).filter(in_state(RUNNING), backend=backend)
    return running.exclude(worker__in=living.values("pk")).count()


def now(database: str) -> datetime:
    """Return the database's now."""
    return sql_counts.moment_from_now(sql.on(database))


def _digits(text: str) -> str:
    return text.strip().lower().replace("-", "")


def _of_worker(text: str) -> Q:
    try:
        return Q(worker_name=text) | Q(worker=UUID(text))
    except ValueError:
        return Q(worker_name=text)


def _have_all_ended(wanted: Wanted) -> bool:
    return bool(wanted.states) and set(wanted.states) <= set(HAVE_ENDED)
