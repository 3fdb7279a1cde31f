"""Its names, each as the verb or the row of ours that stands for it.

Nothing is decided here: what a test asserts must come out of our own code. Two things are put in
order for it. There, a plain task is enqueued inside the tick's transaction; ours hands it over
after the commit, which a TestCase never makes. And there, what may be sent again is computed from
when it was made or sent; ours stands in a column, which follows here when a test moves the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from itertools import count
from typing import Any
from uuid import UUID

from django_once import compat, sql
from django_once.compat import task_backends
from django_once.contrib.periodic_tasks import (
    compute_next_run_at as compute_next_run_at,
)
from django_once.contrib.periodic_tasks import exactly_once as exactly_once
from django_once.contrib.periodic_tasks import scheduled_task as our_scheduled_task
from django_once.contrib.periodic_tasks import (
    validate_cron_expression as validate_cron_expression,
)
from django_once.definitions import registry, schedule, timetable
from django_once.models import Schedule
from django_once.models import TaskExecution as Record
from django_once.models.execution.end import complete_ended, prune
from django_once.scheduling import dispatch, editing, firing, readings, running, syncing
from django_once.sql.counts import moment_from_now
from tests.settings import DJANGO_BACKENDS

DATABASE = "default"
LEASE = timedelta(minutes=5)
DUMMY_BACKEND_PATH = f"{DJANGO_BACKENDS}.dummy.DummyBackend"
task: Any = import_module(DJANGO_BACKENDS.rpartition(".")[0]).task
TASK_CLASSES = (compat.Task,)
COLUMNS = {
    "task_path": "task", "cron_expression": "cron", "queue_name": "queue",
    "last_run_at": "last_fired_at", "next_run_at": "next_due_at", "total_run_count": "fired",
    "id": "id", "pk": "id",
}  # fmt: skip
_minutes = count(1)


class DefaultBackend:
    """The default backend, whatever the settings of a test say that it is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(task_backends["default"], name)


default_task_backend = DefaultBackend()


class ScheduledTask:
    """A schedule's row under its names."""

    class Source:
        CODE, DATABASE = Schedule.CODE, Schedule.DATABASE

    def __init__(self, row: Schedule) -> None:
        self.__dict__["row"] = row

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.row, COLUMNS.get(name, name))
        return json.loads(value) if name in ("args", "kwargs") else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.row, COLUMNS.get(name, name), value)

    def save(self, update_fields: Any = None) -> None:
        before = Schedule.objects.get(pk=self.row.pk)
        if before.enabled != self.row.enabled:
            (editing.enable if self.row.enabled else editing.disable)(DATABASE, self.row.pk)
        moment = self.row.next_due_at
        Schedule.objects.filter(pk=self.row.pk).update(next_due_at=moment, fires_at=moment)

    def refresh_from_db(self) -> None:
        self.row.refresh_from_db()

    def enqueue_now(self) -> None:
        enqueue_scheduled_task(self)


class Schedules:
    """`ScheduledTask.objects`."""

    def create(
        self, *, name: str, task_path: str, cron_expression: str, enabled: bool = True,
        source: str = Schedule.DATABASE, **said: Any,
    ) -> ScheduledTask:  # fmt: skip
        moment = said.pop("next_run_at", None)
        words = {
            "name": name, "task": task_path, "cron": cron_expression, "timezone": "UTC",
            "args": json.dumps(said.pop("args", [])), "kwargs": json.dumps(said.pop("kwargs", {})),
            "source": source, **{COLUMNS.get(key, key): value for key, value in said.items()},
        }  # fmt: skip
        if moment is None:
            planned = editing.plan(readings.rule_said(words), now())
        else:
            planned = {"rule_since": moment, "next_due_at": moment, "fires_at": moment}
        return ScheduledTask(Schedule.objects.create(**words, **planned, enabled=enabled))

    def get(self, **said: Any) -> ScheduledTask:
        return ScheduledTask(Schedule.objects.get(**said))

    def filter(self, **said: Any) -> Any:
        return Schedule.objects.filter(**said)

    def count(self) -> int:
        return Schedule.objects.count()


ScheduledTask.objects = Schedules()  # type: ignore[attr-defined]


class TaskExecution:
    """A permit's record under its names."""

    class Status:
        PENDING, COMPLETED = Record.PENDING, Record.COMPLETED

    def __init__(self, row: Record) -> None:
        self.row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, "schedule_id" if name == "scheduled_task_id" else name)

    def refresh_from_db(self) -> None:
        self.row.refresh_from_db()


class Permits:
    """`TaskExecution.objects`: the records of what runs under a permit, and no others."""

    def __init__(self, **said: Any) -> None:
        self.said = said

    def create(self, *, scheduled_task: Any, status: str = Record.PENDING, **said: Any) -> Any:
        # Theirs have no due moment, and so may be many at one instant.
        moment = now() - next(_minutes) * timedelta(minutes=1)
        row = Record.objects.create(
            schedule_id=scheduled_task.pk, due_at=moment, status=status, retention=86400.0, **said
        )
        self.filter(id=row.pk).update(created_at=now())
        row.refresh_from_db()
        return TaskExecution(row)

    def filter(self, **said: Any) -> Permits:
        return Permits(**{**self.said, **said})

    def update(self, **changes: Any) -> None:
        for row in self._rows():
            for name, value in changes.items():
                setattr(row, name, value)
            row.leased_until = (row.dispatched_at or row.created_at) + LEASE
            if row.status != Record.PENDING:
                row.kept_until = row.created_at + timedelta(hours=24)
            row.save()

    def count(self) -> int:
        return len(self._rows())

    def first(self) -> Any:
        rows = self._rows()
        return TaskExecution(rows[0]) if rows else None

    def _rows(self) -> list[Record]:
        # What was skipped has no record there at all.
        rows = Record.objects.filter(**self.said).exclude(status=Record.SKIPPED)
        rows = rows.select_related("schedule")
        return [row for row in rows if has_permit(row.schedule.task)]


TaskExecution.objects = Permits()  # type: ignore[attr-defined]


@dataclass(frozen=True)
class ScheduleEntry:
    """What a registry holds of a schedule."""

    task: Any
    cron_expression: str
    name: str
    timezone: str = "UTC"
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    queue_name: str = "default"
    priority: int = 0
    backend: str = "default"


class ScheduleRegistry:
    """A timetable of its own; what is declared in it is declared by our decorator."""

    def __init__(self) -> None:
        self.declared: dict[str, Any] = {}

    def register(self, task: Any, *, cron: str, name: str, **said: Any) -> None:
        with the_timetable(self.declared):
            our_scheduled_task(cron=cron, name=name, **said)(task)

    def get_entries(self) -> dict[str, ScheduleEntry]:
        return {name: entry_of(one) for name, one in self.declared.items()}


def entry_of(one: schedule.Declared) -> ScheduleEntry:
    assert one.rule.cron is not None
    return ScheduleEntry(
        registry.find(one.task), one.rule.cron.text, one.name, one.timezone, json.loads(one.args),
        json.loads(one.kwargs), one.queue, one.priority, one.backend,
    )  # fmt: skip


def scheduled_task(*, registry: ScheduleRegistry, **said: Any) -> Any:
    def declare(task: Any) -> Any:
        with the_timetable(registry.declared):
            return our_scheduled_task(**said)(task)

    return declare


@contextmanager
def the_timetable(declared: dict[str, Any]) -> Iterator[None]:
    before, timetable._declared = timetable._declared, declared
    try:
        yield
    finally:
        timetable._declared = before


def sync_code_schedules(registry: ScheduleRegistry) -> None:
    """Bring what a registry declares into rows; it is what this process declares from now on."""
    timetable._declared = registry.declared
    syncing.sync(DATABASE)


def enqueue_scheduled_task(scheduled: ScheduledTask) -> None:
    with plain_tasks_at_once():
        running.run_now(DATABASE, scheduled.pk)


def dispatch_execution(_configured: Any, execution: TaskExecution) -> None:
    dispatch.dispatch(DATABASE, execution.row.pk)


class PeriodicTaskScheduler:
    """The verbs of a scheduler's turn."""

    def __init__(self, interval: int) -> None:
        self.interval = interval

    def tick(self) -> None:
        self._cleanup_stale_executions()
        complete_ended(DATABASE)
        unknown: frozenset[str] = frozenset()
        with plain_tasks_at_once():
            while (told := firing.fire_due(DATABASE, unknown)).looked_at:
                unknown |= told.unknown
                if not told.fired and told.unknown:
                    break

    def _cleanup_stale_executions(self) -> None:
        dispatch.dispatch_again(DATABASE, LEASE.total_seconds())

    def _delete_old_executions(self) -> None:
        prune(DATABASE)


@contextmanager
def plain_tasks_at_once() -> Iterator[None]:
    """Hand over what has no permit when this ends, as if the transaction had committed."""
    later = dispatch.after_commit
    found: list[tuple[str, str, UUID]] = []
    dispatch.after_commit = lambda *said: found.append(said)
    try:
        yield
    finally:
        dispatch.after_commit = later
    for database, backend, record in found:
        row = Record.objects.filter(pk=record).select_related("schedule").first()
        is_permit = row is not None and has_permit(row.schedule.task)
        (later if is_permit else dispatch.at_once)(database, backend, record)


def has_permit(path: str) -> bool:
    found = registry.find(path)
    return found is not None and readings.needs_permit(found)


def is_exactly_once(function: Any) -> bool:
    return bool(registry.options_of(function).get("delivery") == "exactly_once")


def now() -> datetime:
    return moment_from_now(sql.on(DATABASE))
