"""What users' tests need: run what is due, move the clock, look at what was enqueued.

    def test_a_charge_is_tried_again_after_five_seconds(self):
        charge.enqueue(order_id=7)
        assert_enqueued(charge, order_id=7)

        run_jobs()
        with moved_clock("5s"):
            run_jobs()

`run_jobs` runs jobs in this process and on this connection, by the same claim, runner and settle
as a worker. In a plain `TestCase` all of it happens inside the test's transaction, with a savepoint
around each attempt, and goes away with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connections, transaction

from django_once import calls, clock, compat, events, payload
from django_once.backend import DatabaseBackend
from django_once.definitions import registry
from django_once.errors import shortened
from django_once.models import Job
from django_once.models.declaration import move_sessions
from django_once.models.gate.admit import admit_waiting
from django_once.models.job.age import lift
from django_once.models.job.claim import EVERY_QUEUE, Walk
from django_once.models.job.locked import await_locks, let_go_overlooked
from django_once.models.job.ready import promote, readmit_known
from django_once.models.job.settle import settle, start
from django_once.models.notification import admit_overlooked
from django_once.models.step import tell_progress
from django_once.models.worker import fresh_holder, register, stop
from django_once.processes import ends, runner, stops
from django_once.processes.guards import Guards
from django_once.sql.values import Attempt

__all__ = [
    "Clock",
    "assert_enqueued",
    "assert_not_enqueued",
    "enqueued_jobs",
    "moved_clock",
    "run_jobs",
]

LEASE_OF_A_TEST = timedelta(hours=1)
LONGEST_WORKER_ID = 64


def run_jobs(
    alias: str = "default",
    *,
    queues: str | Iterable[str] = EVERY_QUEUE,
    max_jobs: int | None = None,
    worker_id: str | None = None,
) -> int:
    """Run the jobs that are due, and those they enqueue, until none is left; return how many ran.

    Each is claimed alone, so the most urgent is always next. `on_commit` callbacks of a body run
    after it, although the test's own transaction never commits.
    """
    backend = _backend(alias)
    database = backend.database
    names = queues.split(",") if isinstance(queues, str) else list(queues)
    holder = fresh_holder(_worker_name(worker_id), alias)
    register(database, holder, LEASE_OF_A_TEST)
    ran, guards = 0, Guards(backend)
    try:
        readmit_known(database, registry.paths())
        while max_jobs is None or ran < max_jobs:
            promote(database)
            for queue, every in backend.settings.ageing.items():
                lift(database, alias, queue, every)
            # A fresh walk each time looks at every lane from its start.
            attempts = Walk(database, holder, names).claim(1)
            if not attempts:
                if let_go_overlooked(database)[0]:
                    continue
                if admit_waiting(database, alias)[0] or admit_overlooked(database, alias):
                    continue
                return ran
            ran += _run_one(backend, attempts[0], guards)
        return ran
    finally:
        if not connections[database].needs_rollback:
            stop(database, holder.id)


def _run_one(backend: DatabaseBackend, attempt: Attempt, guards: Guards) -> int:
    database = backend.database
    if attempt.stopped_by:
        free, stopped = stops.judged(backend, [attempt])
        settle(database, [ended.outcome for ended in stopped if ended.outcome])
        if not free:
            return 0
    if runner.needs_start(attempt) and not start(database, attempt):
        return 0
    connection = connections[database]
    with _on_commit_run(connection):
        ended = _run_apart(backend, attempt, connection)
        (ended,) = guards.judged([ended], lambda work: work())
        if ended.outcome is not None and settle(database, [ended.outcome]):
            events.attempt_superseded(attempt.id, attempt.attempt)
            return 0
    if ended.outcome is not None:
        await_locks(database, [ended.outcome.blocked_by])
    if ended.told is not None:
        tell_progress(database, [ended.told])
    ends.tell_finished(backend, ended)
    was_put_aside = (
        ended.outcome is not None and ended.outcome.blocked_by and ended.outcome.ran is None
    )
    return 0 if was_put_aside else 1


def _run_apart(backend: DatabaseBackend, attempt: Attempt, connection: Any) -> ends.Ended:
    """Run the body in a savepoint when there is a transaction, which a failure rolls back."""
    if not connection.in_atomic_block:
        return runner.run(backend, attempt)
    try:
        with transaction.atomic(using=connection.alias):
            ended = runner.run(backend, attempt)
            if ended.exception is not None or connection.needs_rollback:
                raise _RollBack(ended)
            return ended
    except _RollBack as rolled_back:
        return rolled_back.ended


class _RollBack(Exception):
    """Undoes the savepoint of an attempt that failed."""

    def __init__(self, ended: ends.Ended) -> None:
        self.ended = ended


@contextmanager
def _on_commit_run(connection: Any) -> Iterator[None]:
    """Run the `on_commit` callbacks that were registered meanwhile, unless a commit does."""
    if not connection.in_atomic_block:
        yield
        return
    before = len(connection.run_on_commit)
    yield
    # One at a time, since a callback may register others.
    while len(connection.run_on_commit) > before:
        _, callback, is_robust = connection.run_on_commit.pop(before)
        try:
            callback()
        except Exception:
            if not is_robust:
                raise
            events.ours.exception(
                "An on_commit callback raised; it was robust, so the test goes on."
            )


def _backend(alias: str) -> DatabaseBackend:
    backend = compat.task_backends[alias]
    if not isinstance(backend, DatabaseBackend):
        raise TypeError(
            f"TASKS[{alias!r}] is {type(backend).__module__}.{type(backend).__name__}, which keeps "
            "no jobs in the database: this needs django_once.backend.DatabaseBackend."
        )
    return backend


def _worker_name(worker_id: str | None) -> str:
    name = "run_jobs" if worker_id is None else worker_id
    if not 1 <= len(name) <= LONGEST_WORKER_ID:
        raise ValueError(
            f"worker_id has 1 to {LONGEST_WORKER_ID} characters, got {shortened(worker_id)}."
        )
    return name


class Clock:
    """The database's clock as a test sees it: what `moved_clock` moves, and moves back."""

    def __init__(self) -> None:
        self._moved = timedelta(0)

    @property
    def moved(self) -> timedelta:
        """How far this clock was moved until now."""
        return self._moved

    def advance(self, by: timedelta | float | str) -> None:
        """Let so much time pass at once: "5m", "1h30m", seconds or a timedelta."""
        length = clock.duration(by, "Clock.advance")
        clock.move(length)
        self._moved += length
        move_sessions()

    def restore(self) -> None:
        """Let it be now again."""
        clock.move(-self._moved)
        self._moved = timedelta(0)
        move_sessions()


@contextmanager
def moved_clock(by: timedelta | float | str = 0) -> Iterator[Clock]:
    """Let every statement see the database's now so much later, inside the block.

    What it yields can move the clock further. Nothing waits, and Python's own clocks stay.
    """
    moved = Clock()
    moved.advance(by)
    try:
        yield moved
    finally:
        moved.restore()


def enqueued_jobs(
    task: compat.AnyTask | None = None, *, alias: str | None = None
) -> list[compat.AnyResult]:
    """Return the results of the jobs that wait, oldest first; of one task, or of all.

    Those of a task are looked for at its own backend, others at "default", unless `alias` says
    where.
    """
    backend = _backend(alias or (task.backend if task is not None else "default"))
    jobs = Job.objects.using(backend.database).filter(backend=backend.alias, status=Job.READY)
    if task is not None:
        jobs = jobs.filter(task=task.module_path)
    ids = jobs.order_by("enqueued_at", "id").values_list("pk", flat=True)
    return [backend.get_result(str(id)) for id in ids]


def assert_enqueued(task: compat.AnyTask, /, *args: Any, **kwargs: Any) -> None:
    """Fail unless a job of this task waits with these arguments; without any, unless one waits.

    An argument may be given by its place or by its name, however it was enqueued.
    """
    waiting = enqueued_jobs(task)
    if not _with_arguments(waiting, args, kwargs, task):
        raise AssertionError(
            f"No job of {task.module_path} waits{_described(args, kwargs)}. {_listed(waiting)}"
        )


def assert_not_enqueued(task: compat.AnyTask, /, *args: Any, **kwargs: Any) -> None:
    """Fail if a job of this task waits with these arguments; without any, if one waits at all."""
    found = _with_arguments(enqueued_jobs(task), args, kwargs, task)
    if found:
        raise AssertionError(
            f"{len(found)} of the jobs of {task.module_path} wait{_described(args, kwargs)}. "
            f"{_listed(found)}"
        )


def _with_arguments(
    waiting: list[compat.AnyResult], args: Any, kwargs: Any, task: compat.AnyTask
) -> list[compat.AnyResult]:
    if not args and not kwargs:
        return waiting
    wanted = calls.bound(task, _as_stored(args), _as_stored(kwargs))
    return [result for result in waiting if calls.bound(task, result.args, result.kwargs) == wanted]


def _as_stored(arguments: Any) -> Any:
    """Return arguments as a job keeps them, where a tuple is a list; mock.ANY stays what it is."""
    try:
        return payload.plain(arguments, "arguments")
    except TypeError:
        return arguments


def _described(args: Any, kwargs: Any) -> str:
    if not args and not kwargs:
        return ""
    return f" with ({_written(args, kwargs)})"


def _listed(results: list[compat.AnyResult]) -> str:
    if not results:
        return "None waits at all."
    calls = (f"({_written(result.args, result.kwargs)})" for result in results[:10])
    more = f" and {len(results) - 10} more" if len(results) > 10 else ""
    return f"Waiting: {', '.join(calls)}{more}."


def _written(args: Any, kwargs: Any) -> str:
    named = (f"{name}={shortened(value)}" for name, value in kwargs.items())
    return ", ".join([*map(shortened, args), *named])
