"""Schedules as users write them: `@scheduled_task` above `@task`, and verbs for those in rows.

    @scheduled_task(cron="0 2 * * *", timezone="Europe/Paris")
    @task
    def nightly_billing() -> None: ...

What code declares becomes a row when a scheduler starts. The row is the schedule: its pause, its
due moment and its counters are the operators' and the scheduler's, and no deploy touches them. A
row that was made by hand stays as it is, whatever code is called alike.

Users' `tasks.py` imports this module, so it imports no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.dispatch import Signal

from django_once import calls, compat, payload
from django_once.declare import Duration, options_of
from django_once.definitions import registry, schedule, timetable
from django_once.definitions.options import AT_MOST_ONCE
from django_once.definitions.schedule import RETENTION, Declared
from django_once.errors import InvalidOption, shortened

__all__ = [
    "add",
    "backfill",
    "disable",
    "enable",
    "fire_due",
    "pause",
    "resume",
    "run_now",
    "schedule_overdue",
    "scheduled_task",
]

Scheduled = TypeVar("Scheduled")
MOST_BYTES = 1_000_000

# Sent with `schedule`, `task` and `expected_by` when no run succeeded by the time that `expect`
# gives it.
schedule_overdue = Signal()


def scheduled_task(
    *,
    cron: str | None = None,
    every: Duration | None = None,
    name: str | None = None,
    timezone: str | None = None,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    backend: str | None = None,
    overlap: str | None = None,
    misfire: str | None = None,
    catch_up: Duration | None = None,
    jitter: Duration = 0,
    starts: datetime | None = None,
    ends: datetime | None = None,
    expect: Duration | None = None,
    gap: str = "",
    fold: str = "",
    retention: Duration | None = RETENTION,
) -> Any:
    """Declare that this task is to run by a rule in time; above `@task`, whose task it returns.

    `cron` or `every` is the rule; a cron expression is read in `timezone`, which is TIME_ZONE
    unless it is said. `overlap` says what a due moment does that meets a run ("skip", "queue_one",
    "queue_all", "allow"), `misfire` what becomes of moments that were missed ("coalesce", "all",
    "skip") within `catch_up`. Without a success for `expect` after a due moment,
    `schedule_overdue` is sent.
    """

    said: dict[str, Any] = {
        "cron": cron, "every": every, "name": name, "timezone": timezone, "args": args,
        "kwargs": kwargs, "queue_name": queue_name, "priority": priority, "backend": backend,
        "overlap": overlap, "misfire": misfire, "catch_up": catch_up, "jitter": jitter,
        "starts": starts, "ends": ends, "expect": expect, "gap": gap, "fold": fold,
        "retention": retention,
    }  # fmt: skip

    def declare(task: Scheduled, /) -> Scheduled:
        timetable.declare(_declared(task, **said))
        return task

    return declare


def add(task: compat.AnyTask, *, name: str, **said: Any) -> None:
    """Store an operator's schedule, in the words of `scheduled_task`; its name must be free."""
    from django_once.scheduling import editing, syncing

    declared = _declared(task, name=name, **said)
    editing.add(syncing.home_of(declared), name=declared.name, **syncing.words(declared))


def pause(name: str, reason: str = "", until: datetime | None = None) -> None:
    """Record what falls due from now on, and run nothing of it until then or until `resume`."""
    from django_once.scheduling import editing

    editing.pause(*_place(name), reason, until)


def resume(name: str) -> None:
    """Let a paused schedule run again from now on."""
    from django_once.scheduling import editing

    editing.resume(*_place(name))


def enable(name: str) -> None:
    """Start a schedule again that was disabled."""
    from django_once.scheduling import editing

    editing.enable(*_place(name))


def disable(name: str) -> None:
    """Stop a schedule, after what is due now; no deploy starts it again."""
    from django_once.scheduling import editing

    editing.disable(*_place(name))


def run_now(name: str) -> None:
    """Run a schedule's task once, now, beside its rule."""
    from django_once.scheduling import running

    running.run_now(*_place(name))


def backfill(
    name: str, start: datetime, end: datetime, *, dry_run: bool = False,
    per_minute: float | None = None,
) -> Sequence[datetime]:  # fmt: skip
    """Run the due moments from `start` until before `end` that have no run; return them."""
    from django_once.scheduling import running

    place = _place(name)
    return running.backfill(*place, start, end, dry_run=dry_run, per_minute=per_minute).moments


def fire_due() -> int:
    """Fire what is due in every database, in this process; return how many runs began.

    For tests, and for who wants to call it from a cron of their own.
    """
    from django_once.models.execution.end import complete_ended
    from django_once.scheduling import firing, readings, syncing

    fired = 0
    for database in readings.homes():
        syncing.sync(database)
        complete_ended(database)
        firing.begin_next_in_turn(database)
        unknown: frozenset[str] = frozenset()
        while (told := firing.fire_due(database, unknown)).looked_at:
            fired += told.fired
            unknown |= told.unknown
    return fired


def _place(name: str) -> tuple[str, UUID]:
    """Return the database and the id of a schedule."""
    from django_once.models.schedule import edit
    from django_once.scheduling import readings

    for database in readings.homes():
        found = edit.find(database, name)
        if found is not None:
            return database, found.pk
    raise InvalidOption(f"There is no schedule {shortened(name)}: see manage.py once schedules.")


def _declared(
    task: Any, *, name: str | None = None, timezone: str | None = None,
    args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None, priority: int | None = None, backend: str | None = None,
    overlap: str | None = None, misfire: str | None = None, catch_up: Duration | None = None,
    expect: Duration | None = None, retention: Duration | None = RETENTION, **when: Any,
) -> Declared:  # fmt: skip
    """Return what is said of a schedule, or refuse what cannot be meant."""
    found = _refuse_what_is_no_task(task)
    called = schedule.checked_name(name if name is not None else found.module_path)
    configured = _configured(found, queue_name, priority, backend)
    positional, named = list(args or []), dict(kwargs or {})
    _refuse_call(found, called, positional, named)
    zone = timezone if timezone is not None else settings.TIME_ZONE
    return Declared(
        name=called,
        task=found.module_path,
        rule=schedule.rule(called, timezone=zone, **when),
        policies=schedule.policies(
            overlap=overlap, misfire=misfire, catch_up=catch_up, expect=expect,
            retention=retention,
            at_most_once=options_of(found).get("delivery") == AT_MOST_ONCE,
        ),
        timezone=zone,
        args=payload.encode(positional, "args", most_bytes=MOST_BYTES),
        kwargs=payload.encode(named, "kwargs", most_bytes=MOST_BYTES),
        queue=configured.queue_name,
        priority=configured.priority,
        backend=configured.backend,
    )  # fmt: skip


def _refuse_what_is_no_task(target: Any) -> compat.AnyTask:
    if isinstance(target, compat.Task):
        if registry.find(target.module_path) is None:
            registry.register(target)
        return target
    if callable(target):
        called = getattr(target, "__qualname__", shortened(target))
        raise InvalidOption(
            f"@scheduled_task stands above @task, and got the function {called!r}, which is no "
            "task yet: change the order of the two."
        )
    raise InvalidOption(f"@scheduled_task takes a task, got {shortened(target)}.")


def _configured(
    task: Any, queue_name: str | None, priority: int | None, backend: str | None
) -> compat.AnyTask:
    """Return the task in the words of its schedule, checked by the backend that shall run it."""
    said = {"queue_name": queue_name, "priority": priority, "backend": backend}
    try:
        changed: compat.AnyTask = replace(
            task, **{name: value for name, value in said.items() if value is not None}
        )
        changed.get_backend().validate_task(changed)
    except (compat.InvalidTask, compat.InvalidTaskBackend) as error:
        raise InvalidOption(f"@scheduled_task of {task.module_path}: {error}") from error
    return changed


def _refuse_call(task: compat.AnyTask, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    try:
        calls.bound(task, args, kwargs)
    except TypeError as error:
        raise InvalidOption(
            f"Schedule {name!r} calls its task with what it does not take: {error}"
        ) from error


def owner() -> str:
    """Return whose code this process runs: the package of its settings.

    Two services on one database are told apart by it: the schedules of one are not the other's.
    """
    module = getattr(settings, "SETTINGS_MODULE", None) or ""
    return str(module).partition(".")[0][:255]
