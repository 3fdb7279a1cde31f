"""`exactly_once`: the promise as a decorator, above `@task` or below it.

    @task
    @exactly_once
    def bill(order_id: int) -> None: ...

What the function writes through the database of its jobs, and the success of the job, commit in one
transaction, once. It is the same as `@task(delivery="exactly_once")`, for those who declare with
Django's own decorator, which takes no words of ours on every Django.

On a backend of others the function runs under a permit instead, when a schedule fires it: see
`permits`. Else it is the function as it was.

The promise is kept beside the function, so that it is found whatever class its task has: below
`@task` nobody knows yet which backend will run it.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from django_once import compat, declare, permits
from django_once.definitions import registry
from django_once.definitions.options import EXACTLY_ONCE
from django_once.errors import InvalidOption, shortened

# A function, or the task that it has become: it comes back as what it was.
Promising = TypeVar("Promising")


def exactly_once(target: Promising, /) -> Promising:
    """Promise that everything this task writes commits with its success, once.

    Takes a function, before `@task` has made a task of it, or a task.
    """
    if isinstance(target, compat.Task):
        promised: Promising = _promised(target)
        return promised
    function: Any = target
    _refuse_what_is_no_function(function)
    registry.remember_options(function, {"delivery": EXACTLY_ONCE})
    asking: Any = permits.permitted(function)
    return asking  # type: ignore[no-any-return]


def _promised(task: Any) -> Any:
    """Return the task with the promise, known under its path instead of the one without."""
    said = declare.options_of(task).get("delivery")
    if said not in (None, EXACTLY_ONCE):
        raise InvalidOption(declare.contradiction(task.module_path, said, EXACTLY_ONCE))
    registry.remember_options(task.func, {"delivery": EXACTLY_ONCE})
    asking = permits.permitted(task.func)
    if isinstance(task, declare.Task):
        promised = declare.unchecked_copy(task, func=asking, delivery=EXACTLY_ONCE)
    else:
        promised = declare.unchecked_copy(task, func=asking)
    registry.redeclare(task, promised)
    return promised


def _refuse_what_is_no_function(target: object) -> None:
    if isinstance(target, (staticmethod, classmethod)) or inspect.isclass(target):
        raise InvalidOption(
            f"@exactly_once takes a task or a function of a module, got {shortened(target)}: a "
            "worker finds a task by the name of its module and its own."
        )
    if not callable(target):
        raise InvalidOption(
            f"@exactly_once takes a function or a task, and no words: got {shortened(target)}. "
            "What else is to be said of the task stands in @task(…)."
        )
