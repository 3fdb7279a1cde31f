"""A job as its caller sees it: Django's TaskResult, built from the row or from what was enqueued.

The worker's ids and the errors are derived from the job's history, where each attempt that did
not succeed left one entry; the attempt that runs, or that succeeded, stands in the row.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.transaction import TransactionManagementError

from django_once import calls, clock, compat, payload
from django_once.compat import TaskError, TaskResultStatus
from django_once.declare import unchecked_copy
from django_once.errors import NotFinished

if TYPE_CHECKING:
    from django_once.models import Job, Progress
    from django_once.models.job.explain import Explanation
    from django_once.sql.values import Attempt

P = ParamSpec("P")
R = TypeVar("R")
# How long to sleep between two looks at a job that somebody waits for: longer each time.
SHORTEST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5


# The stubs forget that Django's TaskResult is frozen too.
@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult(compat.ResultOf[P, R]):  # type: ignore[misc]
    """Django's TaskResult of a job of ours; its values were normalised when they were stored.

    One under a key knows its `generation`, and from `add` or `replace` the `disposition`.
    """

    key: str | None = None
    generation: int | None = None
    disposition: str | None = None

    def __post_init__(self) -> None:
        """Take args and kwargs as they are: they come from the text that the task receives."""

    @property
    def progress(self) -> Progress | None:
        """How far the job is, as its body last told: `done`, `total`, `message`; asks each time."""
        from django_once.models.step import progress_of

        backend: Any = self.task.get_backend()
        return progress_of(backend.database, UUID(self.id))

    @property
    def is_new(self) -> bool:
        """Whether this very call enqueued the job; False when one was there that stands for it."""
        return self.disposition in (None, "added")

    def explain(self) -> Explanation:
        """Return why the job does not run: `says` in one sentence, `findings` one by one."""
        from django_once.models.job.explain import explain

        backend: Any = self.task.get_backend()
        found = explain(backend.database, UUID(self.id), calls.of_job)
        if found is None:
            raise compat.TaskResultDoesNotExist(f"Job {self.id} is stored no more, or not yet.")
        return found

    async def aexplain(self) -> Explanation:
        """Do what `explain` does, from async code."""
        return await sync_to_async(self.explain, thread_sensitive=True)()

    def cancel(self) -> bool:
        """End the job as cancelled, or ask its body to; False when neither could be done.

        What waits ends at once. What runs is asked: it ends as cancelled unless it succeeds before.
        False means that it had ended already, or that an `exactly_once` body holds it, whose commit
        decides.
        """
        from django_once.models.job.cancel import cancel

        backend: Any = self.task.get_backend()
        done = cancel(backend.database, [UUID(self.id)])
        return bool(done.ended or done.requested)

    async def acancel(self) -> bool:
        """Do what `cancel` does, from async code."""
        return await sync_to_async(self.cancel, thread_sensitive=True)()

    def wait(self, timeout: timedelta | float | str | None = None) -> Self:
        """Return this result when its job has ended, refreshed.

        Where the job was replaced under its key, that is the result of the one in its place. Raises
        NotFinished when it takes longer than the timeout.
        """
        waiting = _Waiting(self, timeout)
        for pause in waiting.pauses():
            time.sleep(pause)
        ended: Self = waiting.result()
        return ended

    async def await_end(self, timeout: timedelta | float | str | None = None) -> Self:
        """Do what `wait` does, from async code; `await` itself is a word of Python's."""
        waiting = _Waiting(self, timeout)
        pauses = waiting.pauses()
        look = sync_to_async(lambda: next(pauses, None), thread_sensitive=True)
        while (pause := await look()) is not None:
            await asyncio.sleep(pause)
        ended: Self = await sync_to_async(waiting.result, thread_sensitive=True)()
        return ended


class _Waiting:
    """Somebody's patience with a job, and with whatever replaces it under its key."""

    def __init__(self, first: Any, timeout: timedelta | float | str | None) -> None:
        self._first = first
        self._job = UUID(first.id)
        self._backend: Any = first.task.get_backend()
        self._length = None if timeout is None else clock.duration(timeout, "timeout")
        self._until = (
            None if self._length is None else time.monotonic() + self._length.total_seconds()
        )

    def pauses(self) -> Iterator[float]:
        """Yield how long to sleep before the next look, until the job has ended."""
        from django_once.models.job.watch import has_ended
        from django_once.models.series.add import in_place_of

        pause = SHORTEST_PAUSE
        while True:
            if has_ended(self._backend.database, self._job):
                replacement = in_place_of(self._backend.database, self._job)
                if replacement is None:
                    return
                self._job, pause = replacement, SHORTEST_PAUSE
                continue
            yield self._shortened(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)

    def result(self) -> Any:
        """Return the result of the job that ended."""
        if str(self._job) != self._first.id:
            return self._backend.get_result(str(self._job))
        self._first.refresh()
        return self._first

    def _shortened(self, pause: float) -> float:
        if connections[self._backend.database].in_atomic_block:
            raise TransactionManagementError(
                f"Waiting for job {self._job} inside a transaction: what was enqueued in it is "
                "seen by nobody before it commits. Wait after the atomic() block."
            )
        left = None if self._until is None else self._until - time.monotonic()
        if left is not None and left <= 0:
            raise NotFinished(f"Job {self._job} has not ended within {self._length}.")
        return pause if left is None else min(pause, left)


class Enqueued(Sequence[compat.ResultOf[P, R]]):
    """The results of `enqueue_many`, in its order; each is built when it is looked at."""

    def __init__(
        self,
        task: compat.TaskOf[P, R],
        enqueued_at: datetime | None,
        members: Sequence[tuple[UUID, str, str]],
        dispositions: Sequence[str] = (),
    ) -> None:
        self._task = task
        self._enqueued_at = enqueued_at
        self._members = members
        self._dispositions = dispositions

    def __len__(self) -> int:
        return len(self._members)

    @overload
    def __getitem__(self, index: int) -> JobResult[P, R]: ...
    @overload
    def __getitem__(self, index: slice) -> Enqueued[P, R]: ...

    def __getitem__(self, index: int | slice) -> JobResult[P, R] | Enqueued[P, R]:
        if isinstance(index, slice):
            return Enqueued(
                self._task, self._enqueued_at, self._members[index], self._dispositions[index]
            )
        id, args, kwargs = self._members[index]
        if self._dispositions:
            # What is unique may have been there before, with arguments and a status of its own.
            found: Any = self._task.get_backend().get_result(str(id))
            unique: JobResult[P, R] = under_key(found, self._dispositions[index])
            return unique
        given, named = payload.decode(args), payload.decode(kwargs)
        return newly_enqueued(self._task, str(id), given, named, self._enqueued_at)

    @property
    def ids(self) -> list[str]:
        """The ids alone, without building a result."""
        return [str(id) for id, _, _ in self._members]

    def __repr__(self) -> str:
        return f"<{len(self)} results of {self._task.module_path}>"


def newly_enqueued(
    task: compat.TaskOf[P, R],
    id: str,
    args: list[Any],
    kwargs: dict[str, Any],
    enqueued_at: datetime | None,
) -> JobResult[P, R]:
    """Return the result of a job that was just stored."""
    return JobResult(
        task=_due_from(task, enqueued_at),
        id=id,
        status=TaskResultStatus.READY,
        enqueued_at=clock.from_database(enqueued_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def _due_from(task: compat.TaskOf[P, R], enqueued_at: datetime | None) -> compat.TaskOf[P, R]:
    """Return the task with its moment, where a length of time from the enqueue on was said."""
    wish: Any = task.run_after
    if enqueued_at is None or not isinstance(wish, timedelta):
        return task
    return unchecked_copy(task, run_after=clock.from_database(enqueued_at + wish))


def of_job(task: compat.TaskOf[P, R], job: Job) -> JobResult[P, R]:
    """Return the result of a stored job, as it is now."""
    history = payload.decode(job.history)
    worker_ids = [entry["worker"] for entry in history if entry.get("worker")]
    if job.status in (job.RUNNING, job.SUCCESSFUL) and job.worker_name:
        worker_ids.append(job.worker_name)
    result: JobResult[P, R] = JobResult(
        task=task,
        id=str(job.id),
        status=TaskResultStatus[job.status],
        enqueued_at=clock.from_database(job.enqueued_at),
        started_at=clock.from_database(job.started_at),
        finished_at=clock.from_database(job.finished_at),
        last_attempted_at=clock.from_database(job.last_attempted_at),
        args=payload.decode(job.args),
        kwargs=payload.decode(job.kwargs),
        backend=job.backend,
        errors=[
            TaskError(exception_class_path=entry["error"], traceback=entry["traceback"])
            for entry in history
            if "error" in entry
        ],
        worker_ids=worker_ids,
        key=job.key,
        generation=job.generation if job.key is not None else None,
    )
    if job.return_value is not None:
        object.__setattr__(result, "_return_value", payload.decode(job.return_value))
    return result


def under_key(
    result: Any, disposition: str, key: str | None = None, generation: int | None = None
) -> Any:
    """Return a result with what became of the wish for it."""
    object.__setattr__(result, "disposition", disposition)
    if generation is not None:
        object.__setattr__(result, "key", key)
        object.__setattr__(result, "generation", generation)
    return result


def of_attempt(task: compat.TaskOf[P, R], job: Job, attempt: Attempt) -> JobResult[P, R]:
    """Return the result as the running attempt sees it, whatever its transaction wrote ahead."""
    result = of_job(task, job)
    object.__setattr__(result, "status", TaskResultStatus.RUNNING)
    object.__setattr__(result, "finished_at", None)
    now = clock.from_database(clock.host_now())
    for name in ("started_at", "last_attempted_at"):
        if getattr(result, name) is None:
            object.__setattr__(result, name, now)
    if len(result.worker_ids) < attempt.attempt:
        result.worker_ids.append(attempt.worker_name)
    return result
