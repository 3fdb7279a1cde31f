"""A schedule's row, read as values: its rule, its policies, and the call that it makes.

Whatever a row says was written by a person, by another release or by SQL. So each of these may
refuse it, with the sentence that stands beside the schedule until somebody corrects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import router

from django_once import calls, compat, payload
from django_once.backend import DatabaseBackend
from django_once.declare import options_of, unchecked_copy
from django_once.definitions import registry, schedule
from django_once.definitions.options import EXACTLY_ONCE
from django_once.definitions.schedule import Policies, Rule
from django_once.errors import InvalidOption

if TYPE_CHECKING:
    from django_once.models.execution.permit import Offer
    from django_once.models.schedule.due import Due


def rule_of(due: Due) -> Rule:
    """Return the rule of a schedule, or refuse it."""
    return _rule(
        due.name, due.cron, due.every, due.timezone, due.starts_at, due.ends_at, due.jitter,
        due.gap, due.fold,
    )  # fmt: skip


# A rule does not change until somebody edits its words, and to read them costs more than to use it.
@lru_cache(maxsize=16384)
def _rule(
    name: str, cron: str, every: float | None, timezone: str, starts_at: datetime | None,
    ends_at: datetime | None, jitter: float, gap: str, fold: str,
) -> Rule:  # fmt: skip
    return schedule.rule(
        name, cron=cron or None, every=every, timezone=timezone, starts=starts_at, ends=ends_at,
        jitter=jitter, gap=gap, fold=fold,
    )  # fmt: skip


def rule_said(said: Mapping[str, Any]) -> Rule:
    """Return the rule that columns of a schedule say, or refuse it."""
    return schedule.rule(
        said["name"], cron=said.get("cron") or None, every=said.get("every"),
        timezone=said.get("timezone", "UTC"), starts=said.get("starts_at"),
        ends=said.get("ends_at"), jitter=said.get("jitter") or 0, gap=said.get("gap", ""),
        fold=said.get("fold", ""),
    )  # fmt: skip


def policies_of(due: Due) -> Policies:
    """Return the policies of a schedule, or refuse them."""
    return _policies(due.overlap, due.misfire, due.catch_up, due.expect, due.retention)


@lru_cache(maxsize=1024)
def _policies(
    overlap: str, misfire: str, catch_up: float | None, expect: float | None,
    retention: float | None,
) -> Policies:  # fmt: skip
    return schedule.policies(
        overlap=overlap, misfire=misfire, catch_up=catch_up, expect=expect, retention=retention
    )


def call_of(due: Due | Offer) -> calls.Call:
    """Return the arguments of a schedule, or refuse what is no JSON of a list and an object."""
    args, kwargs = decoded(due.args, "args"), decoded(due.kwargs, "kwargs")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidOption(
            f"Schedule {due.name!r} holds args {due.args[:80]} and kwargs {due.kwargs[:80]}: write "
            "a list and an object as JSON."
        )
    return args, kwargs


def decoded(text: str, name: str) -> Any:
    """Return what a column's JSON says, or refuse what is none."""
    try:
        return payload.decode(text)
    except ValueError as error:
        raise InvalidOption(f"{name} is no JSON: {error}.") from error


def configured_task(
    database: str, path: str, queue: str, priority: int, backend: str
) -> compat.AnyTask:
    """Return a schedule's task in its words, or refuse what its backend could not run."""
    task = registry.find(path)
    if task is None:
        raise InvalidOption(f"Task {path!r} is not known to this process.")
    home = home_of(backend)
    if home is not None and home != database:
        raise InvalidOption(
            f"TASKS[{backend!r}] keeps its jobs in database {home!r}, and this schedule is in "
            f"{database!r}: they must share one, or a job could exist without its firing."
        )
    configured = unchecked_copy(
        task, queue_name=queue, priority=priority, backend=backend, run_after=None
    )
    configured.get_backend().validate_task(configured)
    return configured


def home_of(backend: str) -> str | None:
    """Return the database of a backend of ours, or None for one of others."""
    found = compat.task_backends[backend]
    return found.database if isinstance(found, DatabaseBackend) else None


def home() -> str:
    """Return the database of schedules whose runs a foreign backend makes, and of their permits."""
    from django_once.models import Schedule  # noqa: PLC0415 - the front loads no model

    return router.db_for_write(Schedule)


def homes() -> list[str]:
    """Return every database in which there may be schedules: of our backends, and of permits."""
    found = [home_of(alias) for alias in compat.task_backends]
    return sorted({home(), *(database for database in found if database is not None)})


def is_ours(backend: str) -> bool:
    """Return whether a backend keeps its jobs as rows of ours."""
    try:
        return isinstance(compat.task_backends[backend], DatabaseBackend)
    except compat.InvalidTaskBackend:
        return False


def needs_permit(task: compat.AnyTask) -> bool:
    """Return whether a task promised, by `@exactly_once`, to run under a permit."""
    return options_of(task).get("delivery") == EXACTLY_ONCE
