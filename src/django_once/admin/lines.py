"""What there is to say of one job, line by line; a dash is a line that is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_once.admin import text
from django_once.management.rows import of_history
from django_once.management.screen import printable
from django_once.models import Job
from django_once.models.job import look
from django_once.redaction import shown

Line = Callable[[Any], Any]


@admin.display(description="state")
def state(job: Any) -> SafeString:
    """Return where it stands."""
    return text.state(look.state_of(job), look.told_state(job))


@admin.display(description="task")
def task(job: Any) -> str:
    """Return which task it runs."""
    return printable(job.task) or text.NOTHING


@admin.display(description="queue")
def queue(job: Any) -> str:
    """Return where it waits or waited."""
    return printable(f"{job.queue}, priority {job.priority}, backend {job.backend}")


@admin.display(description="budgets")
def budgets(job: Any) -> str:
    """Return how often it was tried, and how often it may be."""
    return (
        f"attempt {job.attempt} of {job.max_attempts}, {job.failures} failed, "
        f"{job.deaths} of {job.max_deaths} deaths"
    )


@admin.display(description="timeout")
def timeout(job: Any) -> str:
    """Return how long an attempt may take."""
    return f"{job.timeout:g} s" if job.timeout else text.NOTHING


@admin.display(description="worker")
def worker(job: Any) -> SafeString | str:
    """Return who holds it or ended it."""
    if not job.worker:
        return printable(job.worker_name) or text.NOTHING
    return format_html(
        '<a href="{}">{}</a>',
        reverse("admin:once_worker_change", args=[job.worker]),
        printable(job.worker_name) or job.worker,
    )


@admin.display(description="series")
def series(job: Any) -> str:
    """Return which succession it belongs to."""
    return printable(f"{job.key}, generation {job.generation}") if job.key else text.NOTHING


@admin.display(description="meta")
def meta(job: Any) -> SafeString | str:
    """Return what travels with it."""
    return text.NOTHING if job.meta == "{}" else text.value(job.meta)


@admin.display(description="history")
def history(job: Any) -> SafeString | str:
    """Return what went wrong with each attempt."""
    return text.history(of_history(job, with_tracebacks=True))


def column(title: str, name: str) -> Line:
    """Return the line of one column that people wrote."""

    @admin.display(description=title)
    def line(job: Any) -> str:
        found = getattr(job, name)
        return text.NOTHING if found in (None, "") else printable(str(found))

    line.__name__ = name
    return line


def moment(title: str, name: str) -> Line:
    """Return the line of one moment."""

    @admin.display(description=title)
    def line(job: Any) -> str:
        return text.exact(getattr(job, name), job.now)

    line.__name__ = name
    return line


def value(title: str, name: str) -> Line:
    """Return the line of one column of JSON, without what is hidden."""

    @admin.display(description=title)
    def line(job: Any) -> SafeString | str:
        told = shown(job)
        if not told.rules or getattr(job, name) is None:
            return text.value(getattr(job, name))
        return text.indented(getattr(told, name))

    line.__name__ = name
    return line


@admin.display(description="due")
def due(job: Any) -> str:
    """Return when it may run, where that is still to come."""
    if job.status != Job.READY:
        return text.NOTHING
    return text.exact(job.due_at, job.now)


SECTIONS: Final[tuple[tuple[str | None, tuple[Line, ...]], ...]] = (
    (
        None,
        (
            state, task, queue, column("delivery", "delivery"), budgets, timeout,
            column("waits for", "blocked_by"),
        ),
    ),
    (
        "When",
        (
            moment("enqueued", "enqueued_at"), moment("not before", "run_after"), due,
            moment("first started", "started_at"), moment("last attempt", "last_attempted_at"),
            moment("cancel requested", "cancel_requested_at"),
            moment("expires unless started", "expires_at"), moment("finished", "finished_at"),
        ),
    ),
    ("What went wrong", (history,)),
    ("Who", (worker, column("fence", "fence"), column("claim", "claim"))),
    (
        "Belongs to",
        (
            series, column("limit", "limit_key"), column("batch", "batch"),
            column("channel", "channel"), meta,
        ),
    ),
)  # fmt: skip

PAYLOAD: Final[tuple[str | None, tuple[Line, ...]]] = (
    "Arguments and result",
    (value("args", "args"), value("kwargs", "kwargs"), value("result", "return_value")),
)
