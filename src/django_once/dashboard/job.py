"""The page of one job: its way from whoever enqueued it to its end, and why it waits if it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import NotThere, Visit
from django_once.management.rows import of_history
from django_once.management.screen import length
from django_once.models import Job, Series, Step, TaskExecution, audit
from django_once.models.job import look
from django_once.models.job.explain import explain
from django_once.models.step import progress_of
from django_once.redaction import decoded, explained, shown

MOST_ATTEMPTS: Final = 50
MOST_STEPS: Final = 200
MOST_ACTS: Final = 20


@dataclass(frozen=True, slots=True)
class Moment:
    """One point of a job's way: when, what happened, and what is known of it."""

    at: datetime | None
    kind: str
    title: str
    says: str = ""
    detail: str = ""
    is_open: bool = False
    took: float | None = None
    page: str = ""
    id: Any = None


def show(visit: Visit, id: UUID) -> Shown:
    """Show all that is known of one job."""
    job = Job.objects.using(visit.database).filter(pk=id).first()
    if job is None:
        raise NotThere(
            "There is no job of this id in this database: it was pruned after its retention, or "
            "the transaction that enqueued it was rolled back."
        )
    state = look.state_of(job)
    told = shown(job)
    found = explain(visit.database, id) if state in look.WAITING else None
    waits = None if found is None else explained(job, found)
    steps = Step.objects.using(visit.database).filter(job=id).order_by("taken_at", "pk")
    progress = progress_of(visit.database, id)
    acts = audit.entries(visit.database, MOST_ACTS, job=id)
    context = {
        "job": job, "state": state, "told": told, "waits": waits, "progress": progress,
        "message": told.text(progress.message) if progress else "",
        "share": _share(job, progress), "moments": _moments(visit, job, state, acts),
        "steps": [(step, told.value(decoded(step.value))) for step in steps[:MOST_STEPS]],
        "meta": told.value(decoded(job.meta)), "facts": list(_facts(visit, job)),
        "can_retry": visit.may_act and state in look.HAVE_ENDED,
        "can_cancel": visit.may_act and state not in look.HAVE_ENDED
        and job.cancel_requested_at is None,
    }  # fmt: skip
    return Shown("jobs", job.task.rpartition(".")[2] or "Job", "once/job.html", context)


def _share(job: Job, progress: Any) -> float | None:
    """Return how far a job is, of one; None when it never told of how much."""
    if job.status == Job.SUCCESSFUL:
        return 1.0
    if progress is None or not progress.total:
        return None
    return max(0.0, min(1.0, float(progress.done / progress.total)))


def _moments(visit: Visit, job: Job, state: str, acts: list[Any]) -> list[Moment]:
    """Return a job's way, in the order in which it happened."""
    found = [_enqueued(visit, job)]
    if job.run_after is not None:
        found.append(Moment(job.run_after, "wish", "Not to run before"))
    if job.started_at is not None:
        waited = (job.started_at - (job.run_after or job.enqueued_at)).total_seconds()
        says = f"after waiting for {_length(waited)}"
        found.append(Moment(job.started_at, "start", "First started", says))
    found += _attempts(job)
    found += [_of_act(entry) for entry in acts]
    if job.cancel_requested_at is not None:
        says = "the body may look: context.check()"
        found.append(Moment(job.cancel_requested_at, "act", "Asked to end", says))
    found.sort(key=lambda one: one.at or visit.now)
    return [*found, *_present(job, state)]


def _enqueued(visit: Visit, job: Job) -> Moment:
    """Return how a job came to be: by a schedule, a series, a channel, or by code."""
    rows = TaskExecution.objects.using(visit.database).filter(job=job.pk)
    execution = rows.select_related("schedule").order_by("created_at").first()
    if execution is not None:
        name = execution.schedule.name if execution.schedule else "a schedule that was deleted"
        by = {"manual": "run by hand", "backfill": "backfilled"}.get(execution.kind, "due")
        says = f"by schedule {name}, {by} at {execution.due_at:%Y-%m-%d %H:%M:%S} UTC"
        page = "schedule" if execution.schedule else ""
        return Moment(job.enqueued_at, "enqueued", "Enqueued", says, page=page,
                      id=execution.schedule_id)  # fmt: skip
    if job.channel:
        return Moment(job.enqueued_at, "enqueued", "Told", f"by channel {job.channel}",
                      page="channels")  # fmt: skip
    if job.key:
        rows_of_series = Series.objects.using(visit.database)
        series = rows_of_series.filter(backend=job.backend, key=job.key).first()
        says = f"as generation {job.generation} of series {job.key}"
        page, id = ("one_series", series.pk) if series else ("", None)
        return Moment(job.enqueued_at, "enqueued", "Enqueued", says, page=page, id=id)
    return Moment(job.enqueued_at, "enqueued", "Enqueued", "by code or SQL, as its commit says")


def _attempts(job: Job) -> Iterator[Moment]:
    """Yield what became of each attempt that did not succeed."""
    try:
        entries = of_history(job, with_tracebacks=True)
    except (ValueError, TypeError, KeyError):
        spoilt = shown(job).text(job.history)
        yield Moment(None, "failed", "History", "it is no JSON that this version knows", spoilt)
        return
    for n, entry in enumerate(entries[-MOST_ATTEMPTS:]):
        is_last = n == min(len(entries), MOST_ATTEMPTS) - 1
        number = f"Attempt {entry['attempt']}" if entry["attempt"] else "Ended"
        by = f" on {entry['worker']}" if entry["worker"] else ""
        error = f"{entry['kind']}: {entry['error']}"
        decision = _decision(job, is_last)
        yield Moment(entry["at"], "failed", f"{number}{by}", f"{error}{decision}",
                     entry["traceback"] or "", is_open=is_last)  # fmt: skip


def _decision(job: Job, is_last: bool) -> str:
    """Return what was decided after an attempt, as far as the row still tells."""
    if not is_last:
        return " → tried again"
    if job.status == Job.FAILED:
        return f" → no more: {job.reason or 'failed'}"
    if job.status == Job.READY:
        return f" → again at {job.due_at:%H:%M:%S} UTC, as attempt {job.attempt + 1}"
    return " → tried again"


def _of_act(entry: Any) -> Moment:
    reason = f": {entry.reason}" if entry.reason else ""
    outcome = f" → {entry.outcome}" if entry.outcome else ""
    title = f"{entry.act.capitalize()} by {entry.actor}"
    return Moment(entry.at, "act", title, f"{entry.door}{reason}{outcome}", page="audit")


def _present(job: Job, state: str) -> Iterator[Moment]:
    """Yield where a job stands now: at its end, in a body, or waiting."""
    if job.finished_at is not None:
        took = None
        if job.last_attempted_at is not None:
            took = (job.finished_at - job.last_attempted_at).total_seconds()
        by = f" on {job.worker_name}" if job.worker_name else ""
        says = f"attempt {job.attempt}{by}" if job.attempt else "before any attempt"
        word = job.reason.replace("_", " ") if job.reason else state
        yield Moment(job.finished_at, state, word.capitalize(), says, took=took)
    elif state == look.RUNNING:
        says = f"attempt {job.attempt} on {job.worker_name}"
        title = "Running" if job.last_attempted_at else "Claimed, not yet started"
        yield Moment(job.last_attempted_at, state, title, says, page="workers")
    else:
        says = f"for {job.blocked_by}" if job.blocked_by else f"due {_clock(job.due_at)}"
        yield Moment(None, state, state.capitalize(), says)


def _facts(visit: Visit, job: Job) -> Iterator[tuple[str, str, str]]:
    """Yield what stands in a job's row, with the filter that finds its like."""
    yield "Queue", job.queue, f"queue:{job.queue}"
    yield "Priority", str(job.priority), ""
    yield "Backend", job.backend, ""
    yield "Delivery", job.delivery.replace("_", " "), ""
    yield "Attempts", f"{job.attempt} of {job.max_attempts}", ""
    if job.deaths:
        yield "Deaths", f"{job.deaths} of {job.max_deaths}", ""
    yield "Fence", str(job.fence), ""
    if job.timeout:
        yield "Timeout", length(job.timeout), ""
    if job.expires_at is not None:
        yield "Expires", _clock(job.expires_at), ""
    words = (("Key", "key"), ("Limit", "limit"), ("Share", "fair"), ("Batch", "batch"),
             ("Channel", "channel"))  # fmt: skip
    values = (job.key, job.limit_key, job.fair_key, job.batch, job.channel)
    for (title, word), value in zip(words, values, strict=True):
        if value:
            yield title, value, f"{word}:{json.dumps(value, ensure_ascii=False)}"


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _length(seconds: float) -> str:
    return f"{max(0.0, seconds) * 1000:,.0f} ms" if seconds < 1 else length(seconds)
