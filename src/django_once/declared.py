"""The task as it was declared: Django's, with what may be said of it here, checked once.

Users' `models.py` and `tasks.py` import this module, so it imports no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from dataclasses import replace as copied
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeAlias, TypeVar

from asgiref.sync import sync_to_async
from django.utils.module_loading import import_string

from django_once import clock, compat, keyed
from django_once.calls import Call, checked_call
from django_once.definitions import options, registry
from django_once.definitions.breaker import Breaker, RetryBudget
from django_once.definitions.limit import Limit
from django_once.definitions.perpetual import Perpetual
from django_once.definitions.retry import Retry
from django_once.definitions.unique import Unique
from django_once.errors import InvalidOption

if TYPE_CHECKING:
    from django_once.results import JobResult

P = ParamSpec("P")
R = TypeVar("R")
Duration: TypeAlias = timedelta | float | str
Redact: TypeAlias = bool | str | Sequence[str] | Callable[[dict[str, Any]], Mapping[str, Any]]
TaskKind = TypeVar("TaskKind", bound=compat.AnyTask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(compat.TaskOf[P, R]):
    """Django's Task with what may be said of it here; see `task`."""

    run_after: Any = None
    takes_context: bool = False
    delivery: str | None = None
    retry: Retry | None = None
    timeout: timedelta | None = None
    expires: timedelta | None = None
    max_deaths: int | None = None
    lock: str | None = None
    if_held: str | None = None
    limit: Limit | None = None
    unique: Unique | str | bool | None = None
    debounce: timedelta | None = None
    cooldown: timedelta | None = None
    fair_key: str | None = None
    weight: float | Mapping[str, float] | None = None
    breaker: Breaker | None = None
    retry_budget: RetryBudget | float | None = None
    key: str | None = None
    perpetual: Perpetual | None = None
    redact: Redact | None = None

    def __post_init__(self) -> None:
        """Check what was said, and remember the task for rows that name it."""
        said = {name: getattr(self, name) for name in options.NAMES}
        for name, value in checked(self.func, said).items():
            object.__setattr__(self, name, value)
        self.get_backend().validate_task(_known_to_its_backend(self))
        registry.register(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        key: str | None = None,
    ) -> Self:
        """Return this task with other words for how to enqueue it; the task itself is unchanged.

        `run_after` is a timedelta from the enqueue on, or an aware datetime. Of one `key` at most
        one job waits: see `add` and `replace`.
        """
        said: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "key": key,
        }
        return copied(self, **{name: value for name, value in said.items() if value is not None})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> compat.ResultOf[P, R]:
        """Store a job that will call the function with these arguments; return its result."""
        return self.get_backend().enqueue(_known_to_its_backend(self), list(args), dict(kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> compat.ResultOf[P, R]:
        """Do what `enqueue` does, from async code."""
        task = _known_to_its_backend(self)
        return await self.get_backend().aenqueue(task, list(args), dict(kwargs))

    def enqueue_many(
        self, calls: Iterable[Call], *, spread: Duration | None = None
    ) -> Sequence[compat.ResultOf[P, R]]:
        """Store one job per (args, kwargs) in one statement; return their results, built when
        looked at. A backend of others stores them one after the other.

        With `spread` they are due at equal distances over so long, the first one at once.
        """
        backend: Any = self.get_backend()
        length = None if spread is None else _spread(spread)
        if hasattr(backend, "enqueue_many"):
            many: Sequence[compat.ResultOf[P, R]] = backend.enqueue_many(self, calls, length)
            return many
        pairs = [checked_call(call) for call in calls]
        return [
            backend.enqueue(_known_to_its_backend(task), list(args), dict(kwargs))
            for task, (args, kwargs) in zip(_apart(self, length, len(pairs)), pairs, strict=True)
        ]

    async def aenqueue_many(
        self, calls: Iterable[Call], *, spread: Duration | None = None
    ) -> Sequence[compat.ResultOf[P, R]]:
        """Do what `enqueue_many` does, from async code."""
        many = sync_to_async(self.enqueue_many, thread_sensitive=True)
        return await many(calls, spread=spread)

    def add(self, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]:
        """Store a job under its key unless one waits or runs there; return the one that does.

        The result's `disposition` says which it was: "added", "waiting" or "running".
        """
        added: JobResult[P, R] = keyed.add(self, args, kwargs)
        return added

    async def aadd(self, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]:
        """Do what `add` does, from async code."""
        return await sync_to_async(self.add, thread_sensitive=True)(*args, **kwargs)

    def replace(
        self, *args: Any, while_running: keyed.WhileRunning = "supersede", **kwargs: Any
    ) -> JobResult[P, R]:
        """Store a job under its key in place of what waits there, whatever runs.

        What runs can name no successor any more. It is asked to end, or with "queue_one" waited
        for.
        """
        replaced: JobResult[P, R] = keyed.replace(self, args, kwargs, while_running)
        return replaced

    async def areplace(self, *args: Any, **kwargs: Any) -> JobResult[P, R]:
        """Do what `replace` does, from async code."""
        return await sync_to_async(self.replace, thread_sensitive=True)(*args, **kwargs)

    def cancel(self, *args: Any, **kwargs: Any) -> int:
        """End what waits under the key, ask what runs to end, and name nothing after it."""
        return keyed.cancel(self, args, kwargs)

    async def acancel(self, *args: Any, **kwargs: Any) -> int:
        """Do what `cancel` does, from async code."""
        return await sync_to_async(self.cancel, thread_sensitive=True)(*args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> JobResult[P, R] | None:
        """Return the result of the present job of the key, or None when it has none."""
        found: JobResult[P, R] | None = keyed.get(self, args, kwargs)
        return found

    async def aget(self, *args: Any, **kwargs: Any) -> JobResult[P, R] | None:
        """Do what `get` does, from async code."""
        return await sync_to_async(self.get, thread_sensitive=True)(*args, **kwargs)

    @classmethod
    def _reconstruct(cls, kwargs: dict[str, Any]) -> Self:
        """Return the task that was pickled, with the function that its path leads to now."""
        path = kwargs["func"]
        try:
            function = import_string(path).func
        except (ImportError, AttributeError) as error:
            raise ValueError(f"Expected {path!r} to point to a Task instance.") from error
        return cls(**{**kwargs, "func": function})

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a task be pickled by its path on every Django, as it can be from 6.1 on."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return self._reconstruct, ({**said, "func": self.module_path},)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a task is not its function, and nobody can say which of the two was meant."""
        raise TypeError(
            f"Task {self.module_path!r} cannot be called like its function: use "
            f"{self.name}.enqueue(…) to run it in the background, or {self.name}.call(…) to run it "
            "now."
        )


def options_of(task: compat.AnyTask) -> dict[str, Any]:
    """Return what was said of a task in our words, wherever it had room for them."""
    said = dict(registry.options_of(task.func))
    # A dataclass type is hashable, whatever its instances are.
    kind: Any = type(task)
    for name in _words_in(kind):
        value = getattr(task, name)
        if value is not None:
            said[name] = value
    return said


def option_of(task: compat.AnyTask, name: str) -> Any:
    """Return what was said of a task by one of our words, or None."""
    said = getattr(task, name, None)
    return registry.options_of(task.func).get(name) if said is None else said


@cache
def _words_in(kind: Any) -> tuple[str, ...]:
    """Return those of our words that a class of tasks has fields for; asked for each job."""
    own = {field.name for field in fields(kind)}
    return tuple(name for name in options.NAMES if name in own)


def unchecked_copy(task: TaskKind, **changes: Any) -> TaskKind:
    """Return a changed copy of a task that was checked before; `replace` would check it again."""
    copied = object.__new__(type(task))
    for name in task.__dataclass_fields__:
        object.__setattr__(copied, name, changes.get(name, getattr(task, name)))
    return copied


def _spread(spread: Duration) -> timedelta:
    length = clock.duration(spread, "spread")
    if not length:
        raise InvalidOption(f"spread must be longer than nothing, got {spread!r}.")
    return length


def _apart(task: Task[P, R], spread: timedelta | None, count: int) -> Iterator[Task[P, R]]:
    """Yield a task for each of so many calls, each as much later than the one before."""
    for place in range(count):
        if spread is None or not place:
            yield task
            continue
        later = spread * place / count
        yield task.using(run_after=later if task.run_after is None else task.run_after + later)


def _known_to_its_backend(task: Task[P, R]) -> compat.TaskOf[P, R]:
    """Return the task in words that its backend knows: others know moments, and no lengths."""
    wish = task.run_after
    if not isinstance(wish, timedelta) or issubclass(task.get_backend().task_class, Task):
        return task
    moment = clock.host_now() + clock.duration(wish, "run_after")
    return unchecked_copy(task, run_after=clock.from_database(moment))


def contradiction(path: str, one: str, other: str) -> str:
    """Return the sentence for a task of which two deliveries were said."""
    return f"{path} cannot be {one} and {other} at once: take one of them away."


def checked(function: Callable[..., Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said of a task, in order; refuse what cannot be meant."""
    wished = options.checked(_with_series(function, _with_promise(function, said)))
    options.refuse_unnamed_places(wished, function)
    return wished


def _with_promise(function: Callable[..., Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said of a task with what `@exactly_once` promised of its function."""
    promised = registry.options_of(function).get("delivery")
    if promised is None:
        return dict(said)
    if said.get("delivery") not in (None, promised):
        path = f"{function.__module__}.{function.__qualname__}"
        raise InvalidOption(contradiction(path, said["delivery"], promised))
    return {**said, "delivery": promised}


def _with_series(function: Callable[..., Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said of a task with what `@perpetual` below it said of its function."""
    kept = registry.options_of(function)
    below = {name: kept[name] for name in ("key", "perpetual") if name in kept}
    return {**below, **{name: value for name, value in said.items() if value is not None}}
