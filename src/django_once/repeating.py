"""`perpetual`: a task whose every job names the next one, above `@task` or below it.

    @perpetual(every="30s", automatic=True)
    @task(takes_context=True)
    def poll(context) -> None: ...

The next job is stored in the transaction that ends the one before, whatever its end: success,
failure, timeout or crash. So nothing that dies in between can break the succession.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from inspect import signature
from typing import Any, TypeVar

from django_once import compat, declare
from django_once.definitions import perpetual as words
from django_once.definitions import registry
from django_once.errors import InvalidOption, shortened

Going = TypeVar("Going", bound=Callable[..., Any])


def perpetual(
    *, every: timedelta | float | str, key: str | None = None, automatic: bool = False
) -> Callable[[Going], Going]:
    """Let each job of this task name the next, so much later, on a grid that does not drift.

    `automatic`: any worker that knows the task begins the series, and begins it again where it
    broke off. Without a `key` the task has one series, named by its path.
    """
    said = {"perpetual": words.checked(every, automatic)}
    if key is not None:
        said["key"] = key  # type: ignore[assignment]

    def declared(target: Any) -> Any:
        if isinstance(target, compat.Task):
            return _going(target, said)
        if not callable(target):
            raise InvalidOption(f"@perpetual takes a task or a function, got {shortened(target)}.")
        # What @task will say of this function includes it.
        registry.remember_options(target, said)
        return target

    return declared


def automatic_tasks(alias: str) -> list[declare.Task[..., Any]]:
    """Return the tasks of a backend whose series begin by themselves."""
    return [
        task
        for task in registry.tasks()
        if isinstance(task, declare.Task)
        and task.backend == alias
        and task.perpetual is not None
        and task.perpetual.automatic
    ]


def _going(task: Any, said: dict[str, Any]) -> Any:
    if not isinstance(task, declare.Task):
        raise InvalidOption(
            f"{task.module_path} is a task of backend {task.backend!r}, which keeps no series: "
            "only tasks of django_once.backend.DatabaseBackend are perpetual."
        )
    _refuse_arguments_of_an_automatic_one(task, said["perpetual"])
    going = replace(task, **said)
    registry.redeclare(task, going)
    return going


def _refuse_arguments_of_an_automatic_one(task: Any, going: words.Perpetual) -> None:
    if not going.automatic:
        return
    given = (None,) if task.takes_context else ()
    try:
        signature(task.func).bind(*given)
    except TypeError as error:
        raise InvalidOption(
            f"{task.module_path} begins by itself, so nobody gives it arguments: {error}. Give "
            "them defaults, or leave out automatic=True."
        ) from None
