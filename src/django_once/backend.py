"""Django's contract on our rows: enqueue, get_result, validate, check.

Enqueue is one INSERT on the caller's connection, so a job exists if and only if the caller's
transaction commits. Everything that cannot work later is refused here: a value that JSON cannot
keep, arguments that do not fit the function, a task that a worker could not find again.

Settings name this module while apps load, so models are imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from django.db import IntegrityError, connections, transaction

from django_once import clock, conf, events, identity, keyed, payload, results, uniqueness
from django_once.calls import Call, checked_call, refuse_misfit
from django_once.compat import (
    DEFAULT_TASK_QUEUE_NAME,
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    ResultOf,
    TaskOf,
    TaskResultDoesNotExist,
)
from django_once.declare import Task, options_of, unchecked_copy
from django_once.definitions import registry
from django_once.definitions.options import AT_LEAST_ONCE, AT_MOST_ONCE
from django_once.errors import InvalidOption, shortened
from django_once.refusals import refuse_another, refuse_function, refuse_words
from django_once.results import Enqueued
from django_once.sql.values import NewJob
from django_once.stamps import stamp
from django_once.terms import terms_of
from django_once.wakeups.listen import announce

P = ParamSpec("P")
R = TypeVar("R")
MOST_COPIES = 1_000


class DatabaseBackend(BaseTaskBackend):
    """Jobs as rows in the project's own database."""

    task_class = Task
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        queues = conf.queues(params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME]))
        super().__init__(alias, {**params, "QUEUES": queues})
        self._params = params
        self._copies: dict[tuple[str, str, int], tuple[AnyTask, AnyTask]] = {}
        self._known: dict[int, tuple[AnyTask, AnyTask]] = {}

    @cached_property
    def settings(self) -> conf.Options:
        """What OPTIONS says, read once; its problems are findings of `manage.py check`."""
        return conf.read(self.options, f"TASKS[{self.alias!r}]['OPTIONS']")

    @cached_property
    def problems(self) -> tuple[conf.Problem, ...]:
        """What is wrong with `TASKS[alias]`."""
        return conf.problems_beside_options(self.alias, self._params) + self.settings.problems

    @property
    def database(self) -> str:
        """The alias of the database where the jobs are; refused while the settings are wrong."""
        for problem in self.problems:
            if problem.kind != "key":
                raise InvalidOption(str(problem))
        return self.settings.database

    def validate_task(self, task: AnyTask) -> None:
        """Refuse a task that this backend could not run later."""
        refuse_function(task)
        refuse_words(task)
        wish: Any = task.run_after
        if isinstance(wish, timedelta):
            # Django knows moments only; the rest of the task is for it to judge.
            task = unchecked_copy(task, run_after=None)
        super().validate_task(task)

    def enqueue(
        self, task: TaskOf[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> ResultOf[P, R]:
        """Store a job in the caller's transaction and return its result."""
        from django_once.models.job.enqueue import enqueue

        if _is_of_series(task):
            added: ResultOf[P, R] = self.enqueue_under_key(task, args, kwargs)
            return added
        task = self._checked(task)
        plain_args, plain_kwargs = _plain(task, args, kwargs)
        job = self._new_job(task, self._draw_id(), *self._texts(plain_args, plain_kwargs))
        terms = terms_of(task, plain_args, plain_kwargs)
        job = replace(job, **terms) if terms else job
        if job.unique_hash is not None:
            unique: ResultOf[P, R] = uniqueness.enqueue(self, task, job, (plain_args, plain_kwargs))
            return unique
        with self._told_of_used_ids([job.id]):
            stored = enqueue(self.database, job)
        self.announce(is_ready=stored.is_ready)
        result = results.newly_enqueued(
            task, str(job.id), plain_args, plain_kwargs, stored.enqueued_at
        )
        events.job_enqueued(type(self), result)
        return result

    def enqueue_under_key(
        self,
        task: AnyTask,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        while_running: str | None = None,
    ) -> Any:
        """Store a job under its key unless one waits or runs there; return the one that does.

        With `while_running` it is stored in place of what waits, whatever runs.
        """
        from django_once.models.series import add

        task = self._checked(task)
        plain_args, plain_kwargs = _plain(task, args, kwargs)
        job = self.job_of_series(task, plain_args, plain_kwargs)
        with self._told_of_used_ids([job.id]):
            if while_running is None:
                placed = add.add(self.database, job)
            else:
                placed = add.replace(self.database, job, while_running)
        if placed.stored is None:
            found: Any = self.get_result(str(placed.job))
            return results.under_key(found, placed.disposition)
        self.announce(is_ready=placed.stored.is_ready)
        result: Any = results.newly_enqueued(
            task, str(job.id), plain_args, plain_kwargs, placed.stored.enqueued_at
        )
        result = results.under_key(result, placed.disposition, job.key, placed.generation)
        events.job_enqueued(type(self), result)
        return result

    def job_of_series(self, task: AnyTask, args: list[Any], kwargs: dict[str, Any]) -> NewJob:
        """Return a job of this task under its key."""
        said = options_of(task)
        going = said.get("perpetual")
        return replace(
            self._new_job(task, self._draw_id(), *self._texts(args, kwargs)),
            key=keyed.key_of(task, said, args, kwargs),
            every=going.every.total_seconds() if going else None,
            **terms_of(task, args, kwargs),
        )

    def key_of(self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the key of a call of this task."""
        return keyed.key_of(task, options_of(task), args, kwargs)

    def enqueue_many(
        self, task: TaskOf[P, R], calls: Iterable[Call], spread: timedelta | None = None
    ) -> Enqueued[P, R]:
        """Store one job per (args, kwargs) in one statement, due over a time if one is said."""
        from django_once.models.job.enqueue import enqueue_many

        task = self._checked(task)
        if _is_of_series(task):
            raise InvalidTask(
                f"{task.module_path} has a key, under which one job waits: call add() for each."
            )
        plain = [_plain(task, *checked_call(call)) for call in calls]
        if not plain:
            return Enqueued(task, None, [])
        ids = self._draw_ids(len(plain))
        members = [(id, *self._texts(*one)) for id, one in zip(ids, plain, strict=True)]
        # A task under no limit says nothing, whatever its arguments are.
        has_terms = bool(terms_of(task, *plain[0]))
        terms = [terms_of(task, *one) for one in plain] if has_terms else []
        job = self._new_job(task, *members[0])
        job = replace(job, **terms[0]) if terms else job
        if spread is not None:
            job = replace(job, step=spread.total_seconds() / len(members))
        if job.unique_hash is not None:
            return uniqueness.enqueue_many(self, task, job, members, terms)
        with self._told_of_used_ids(ids):
            stored = enqueue_many(self.database, job, members, terms)
        self.announce(is_ready=stored.is_ready)
        if spread is not None and stored.is_ready:
            # A keeper looks when the second of them is due.
            self.announce(is_ready=False)
        enqueued = Enqueued(task, stored.enqueued_at, members)
        if events.enqueue_is_heard():
            for result in enqueued:
                events.job_enqueued(type(self), result)
        return enqueued

    def get_result(self, result_id: str) -> AnyResult:
        """Return the result of a job of this backend, as it is now."""
        from django_once.models import Job

        id = _id_of(result_id)
        job = id and Job.objects.using(self.database).filter(pk=id, backend=self.alias).first()
        if not job:
            raise TaskResultDoesNotExist(
                f"Backend {self.alias!r} has no job {shortened(result_id)}: it was never "
                "enqueued there, its transaction was rolled back, or it was pruned."
            )
        return results.of_job(self.task_of(job.task, job.queue, job.priority, job.run_after), job)

    def task_of(
        self, path: str, queue: str, priority: int, run_after: datetime | None = None
    ) -> AnyTask:
        """Return the task that a row names, with the words it was enqueued with."""
        task = registry.find(path)
        if task is None:
            raise TaskResultDoesNotExist(
                f"The job is stored, but its task {path!r} is not known to this process: it was "
                "renamed or removed, or its module is not loaded."
            )
        # A worker asks for each job, and nearly always for one of a few.
        known, copied = self._copies.get((path, queue, priority), (None, None))
        if known is task and copied is not None and run_after is None:
            return copied
        copied = unchecked_copy(
            task,
            queue_name=queue,
            priority=priority,
            backend=self.alias,
            run_after=clock.from_database(run_after),
        )
        if run_after is None and len(self._copies) < MOST_COPIES:
            self._copies[path, queue, priority] = task, copied
        return copied

    def check(self, **kwargs: Any) -> list[Any]:
        """Return what is wrong with this backend's settings and its database."""
        from django_once.checks import check_backend

        return check_backend(self)

    def _checked(self, task: TaskOf[P, R]) -> TaskOf[P, R]:
        """Return the task as one of this backend, refused if it could not run here."""
        known, kept = self._known.get(id(task), (None, task))
        ours = cast("TaskOf[P, R]", kept)
        if known is not task:
            self.validate_task(task)
            # Whoever asks a backend by its name may hold a task that was declared for another.
            if task.backend != self.alias:
                ours = unchecked_copy(task, backend=self.alias)
            if len(self._known) >= MOST_COPIES:
                self._known.clear()
            # Tasks do not change; to look at one again would take longer than to write its job.
            self._known[id(task)] = task, ours
        refuse_another(task)
        return ours

    def _texts(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[str, str]:
        most = self.settings.max_arguments
        named = payload.write(kwargs, "kwargs", most_bytes=most) if kwargs else "{}"
        return payload.write(args, "args", most_bytes=most), named

    def _new_job(self, task: AnyTask, id: UUID, args: str, kwargs: str) -> NewJob:
        """Return a job of this task that can be stored."""
        settings, said = self.settings, options_of(task)
        delivery = said.get("delivery", AT_LEAST_ONCE)
        # What must never start twice is not tried again, whatever the backend's default is.
        retry = None if delivery == AT_MOST_ONCE else said.get("retry") or settings.retry
        timeout = said.get("timeout")
        return NewJob(
            id=id,
            backend=self.alias,
            task=task.module_path,
            args=args,
            kwargs=kwargs,
            queue=task.queue_name,
            priority=int(task.priority),
            run_after=task.run_after,
            expires=said.get("expires"),
            max_attempts=retry.max_attempts if retry else 1,
            max_deaths=said.get("max_deaths", settings.deaths),
            timeout=timeout.total_seconds() if timeout else None,
            delivery=delivery,
            meta=stamp(id, task, said),
        )

    def announce(self, *, is_ready: bool) -> None:
        """Wake whoever may run what was stored, when the caller's transaction has committed."""
        if self.settings.wakeup == "auto":
            announce(self.settings.database, self.alias, is_ready=is_ready)

    def _draw_ids(self, count: int) -> list[UUID]:
        if self.settings.id_function is None:
            return identity.job_ids(count)
        return [self._draw_id() for _ in range(count)]

    def _draw_id(self) -> UUID:
        draw = self.settings.id_function
        if draw is None:
            return identity.job_id()
        drawn = draw()
        id = drawn if isinstance(drawn, UUID) else _id_of(drawn)
        if id is None:
            raise InvalidOption(
                f"ID_FUNCTION of TASKS[{self.alias!r}] must return a UUID or its text, got "
                f"{shortened(drawn)}."
            )
        return id

    @contextmanager
    def _told_of_used_ids(self, ids: Sequence[UUID]) -> Iterator[None]:
        """Say it with a sentence, in a savepoint, when ID_FUNCTION returned an id that is taken."""
        if self.settings.id_function is None:
            yield
            return
        is_inside = connections[self.database].in_atomic_block
        try:
            with transaction.atomic(using=self.database) if is_inside else nullcontext():
                yield
        except IntegrityError as error:
            raise InvalidOption(
                f"ID_FUNCTION of TASKS[{self.alias!r}] returned an id that a job has already, so "
                f"nothing was enqueued: {error}"
            ) from error


def _is_of_series(task: AnyTask) -> bool:
    said = options_of(task)
    return "key" in said or "perpetual" in said


def _plain(
    task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments as the task will see them; refuse those that it does not take."""
    refuse_misfit(task, args, kwargs)
    named = payload.plain(dict(kwargs), "kwargs") if kwargs else {}
    return payload.plain(list(args), "args"), named


def _id_of(result_id: object) -> UUID | None:
    """Return the id that a result's text names, or None for one that never was ours."""
    if not isinstance(result_id, str) or len(result_id) not in (32, 36):
        return None
    try:
        return UUID(result_id)
    except ValueError:
        return None


__all__ = ["DatabaseBackend", "Enqueued"]
