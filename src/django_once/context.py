"""What a body that takes its context is given: Django's TaskContext, with fence and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django_once.compat import AnyResult, ContextOf
from django_once.steps import Step, Steps, told

if TYPE_CHECKING:
    from django_once.errors import OnceError
    from django_once.locks.holding import Held
    from django_once.sql.values import Attempt


class Context(ContextOf[..., Any]):
    """The running attempt, as its body sees it.

    The result is read from the database when the body first asks for it: most never do.
    """

    __slots__ = (
        "_attempt", "_due", "_held", "_read", "_reschedule", "_result", "_steps", "_stop", "_tell",
        "_why_stop",
    )  # fmt: skip

    _attempt: Attempt
    _read: Callable[[], AnyResult]
    _result: AnyResult | None
    _why_stop: Callable[[], OnceError | None]
    _held: Callable[[], Held | None]
    _due: Callable[[], datetime | None]
    _reschedule: Callable[..., None]
    _stop: Callable[[], None]
    _steps: Steps
    _tell: Callable[..., None]

    def __init__(
        self, attempt: Attempt, read: Callable[[], AnyResult],
        why_stop: Callable[[], OnceError | None], held: Callable[[], Held | None] = lambda: None,
        due: Callable[[], datetime | None] = lambda: None,
        reschedule: Callable[..., None] | None = None, stop: Callable[[], None] | None = None,
        steps: Steps | None = None, tell: Callable[..., None] | None = None,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "_attempt", attempt)
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_result", None)
        object.__setattr__(self, "_why_stop", why_stop)
        object.__setattr__(self, "_held", held)
        object.__setattr__(self, "_due", due)
        object.__setattr__(self, "_reschedule", reschedule)
        object.__setattr__(self, "_stop", stop)
        object.__setattr__(self, "_steps", steps)
        object.__setattr__(self, "_tell", tell)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a context tells of its attempt, and is nobody's to change."""
        raise FrozenInstanceError(f"A task's context cannot be changed, so {name!r} was not set.")

    @property
    def task_result(self) -> AnyResult:  # type: ignore[override]
        """The TaskResult of the running job."""
        if self._result is None:
            object.__setattr__(self, "_result", self._read())
        assert self._result is not None
        return self._result

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._attempt.attempt

    @property
    def fence(self) -> int:
        """A number that only grows: what writes for this job must refuse a smaller one."""
        return self._attempt.fence

    @property
    def lock(self) -> Held:
        """The lock of a task that was declared with one; its fence compares among its holders."""
        held = self._held()
        if held is None:
            raise AttributeError(
                "This task has no lock: declare it with @task(lock='…') to have context.lock."
            )
        return held

    @property
    def job_id(self) -> str:
        """The id of the job, which is the id of its result."""
        return str(self._attempt.id)

    @property
    def scheduled_for(self) -> datetime | None:
        """The due moment that a schedule enqueued this job for, however late it runs; else None."""
        return self._due()

    @property
    def should_stop(self) -> bool:
        """Whether this attempt should end now: cancelled, out of time, or no longer its worker's.

        Asks nobody, so it may be looked at in every turn of a loop.
        """
        return self._why_stop() is not None

    def check(self) -> None:
        """Return while the body may go on; else raise why not, for the body to let pass.

        Raises Cancelled, TimedOut, Superseded or WorkerLost.
        """
        why = self._why_stop()
        if why is not None:
            raise why

    @property
    def key(self) -> str | None:
        """The key of the job's series, if it has one."""
        return self._attempt.key

    def reschedule(
        self, *args: Any, after: timedelta | float | str | None = None,
        at: datetime | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Let the next job of this perpetual task be due then; with arguments, if any are given.

        It is stored with the end of this attempt, unless the job is replaced before.
        """
        self._reschedule(args, kwargs, after, at)

    def stop(self) -> None:
        """Let no job of this perpetual task come after this one, until somebody adds one."""
        self._stop()

    def step(self, name: str) -> Step:
        """Return a step for a with-block, which a later attempt finds done, with its result."""
        return self._steps.named(name)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the body is; it is written down about once a second, and costs nothing."""
        self._tell(*told(done, total, message))

    def idempotency_key(self, name: str) -> str:
        """Return a key for one effect of this job, the same in every attempt."""
        if not name or not isinstance(name, str):
            raise ValueError(f"An idempotency key needs the name of its effect, got {name!r}.")
        return f"{self._attempt.id}:{name}"

    def __repr__(self) -> str:
        return f"Context(job_id={self.job_id!r}, attempt={self.attempt}, fence={self.fence})"

    # Contexts are values of their attempt: equal only to themselves.
    __hash__ = object.__hash__
    __eq__ = object.__eq__
