"""`task`: Django's decorator, with our options on every Django that is supported.

Django 6.1 and the backport forward what they do not know to the backend's class of tasks, 6.0
does not. So this decorator builds the task itself: one of ours, also for a backend of others,
unless that one insists on a class of its own; then what it has no field for is kept beside the
function.

Users' `models.py` and `tasks.py` import this module, so it imports no model.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import fields
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from django_once import compat
from django_once.compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
)
from django_once.declared import Duration as Duration
from django_once.declared import Redact as Redact
from django_once.declared import Task as Task
from django_once.declared import checked as checked_words
from django_once.declared import contradiction as contradiction
from django_once.declared import option_of as option_of
from django_once.declared import options_of as options_of
from django_once.declared import unchecked_copy as unchecked_copy
from django_once.definitions import options, registry
from django_once.definitions.breaker import Breaker, RetryBudget
from django_once.definitions.limit import Limit
from django_once.definitions.retry import Retry
from django_once.definitions.unique import Unique
from django_once.errors import InvalidOption, shortened

if TYPE_CHECKING:
    from django_once.context import Context

P = ParamSpec("P")
R = TypeVar("R")


class Words(TypedDict, total=False):
    """What may be said of a task beside whether it takes a context."""

    priority: int
    queue_name: str
    backend: str
    delivery: str | None
    retry: Retry | None
    timeout: Duration | None
    expires: Duration | None
    max_deaths: int | None
    lock: str | None
    if_held: str | None
    key: str | None
    limit: Limit | None
    unique: Unique | str | bool | None
    debounce: Duration | None
    cooldown: Duration | None
    fair_key: str | None
    weight: float | Mapping[str, float] | None
    redact: Redact | None
    breaker: Breaker | None
    retry_budget: RetryBudget | float | None


if TYPE_CHECKING:

    class Declares(Protocol):
        """What `@task(…)` does with a function: its parameters and its result stay known."""

        @overload
        def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    class DeclaresWithContext(Protocol):
        """What `@task(takes_context=True)` does: whoever enqueues gives no context."""

        @overload
        def __call__(
            self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
        ) -> Task[P, R]: ...
        @overload
        def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(*, takes_context: Literal[False] = ..., **said: Unpack[Words]) -> Declares: ...


@overload
def task(*, takes_context: Literal[True], **said: Unpack[Words]) -> DeclaresWithContext: ...


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = DEFAULT_TASK_PRIORITY,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **said: Any,
) -> Any:
    """Make a function a task, which can be enqueued.

    Beside Django's own words those of `options.NAMES`. What else the backend's class of tasks has a
    field for may be said too.
    """

    def declare(function: Callable[..., Any]) -> compat.AnyTask:
        _refuse_a_task(function)
        kind, has_room = _kind_for(backend)
        theirs = _words_of_its_own(kind, said)
        own = {name: said[name] for name in said if name not in theirs}
        checked = checked_words(function, own)
        if checked and not has_room:
            registry.remember_options(function, checked)
        declared: compat.AnyTask = kind(
            func=function,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **(checked if has_room else {}),
            **theirs,
        )
        if not has_room:
            registry.register(declared)
        return declared

    return declare if function is None else declare(function)


def _kind_for(backend: str) -> tuple[type[compat.AnyTask], bool]:
    """Return the class of a backend's tasks, and whether it has room for our words."""
    kind = compat.task_backends[backend].task_class
    if issubclass(Task, kind):
        return Task, True
    return kind, issubclass(kind, Task)


def _words_of_its_own(kind: type[compat.AnyTask], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said in words that only this class of tasks has fields for."""
    known = {*options.NAMES, *(field.name for field in fields(compat.Task))}
    theirs = {field.name for field in fields(kind)} - known
    return {name: value for name, value in said.items() if name in theirs}


def _refuse_a_task(function: Any) -> None:
    if isinstance(function, compat.Task):
        raise InvalidOption(
            f"{function.module_path} is a task already: it was decorated twice. Keep one @task."
        )
    if not callable(function):
        raise InvalidOption(f"@task takes a function, got {shortened(function)}.")
