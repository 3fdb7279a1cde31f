"""The call: what one job hands to its function, which must fit before anything is stored."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from django_once import compat, payload
from django_once.definitions import registry
from django_once.errors import shortened

# Positional arguments, and those with a name.
Call: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]


def checked_call(call: Any) -> Call:
    """Return what one member of `enqueue_many` says; refuse what is not a pair."""
    if type(call) is tuple and len(call) == 2 and type(call[0]) is tuple and type(call[1]) is dict:
        # As nearly everybody writes it, in a fifth of the time.
        return call
    match call:
        case (list() | tuple() as args, Mapping() as kwargs):
            return args, kwargs
    raise TypeError(f"enqueue_many takes (args, kwargs) pairs, got {shortened(call)}.")


def bound(task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of the function's parameters.

    Refuses what does not fit: it would fail in the worker.
    """
    given = (None, *args) if task.takes_context else args
    taken = signature(task.func)
    try:
        return taken.bind(*given, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{task.module_path}{taken}: {error}.") from None


def refuse_misfit(task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that the function does not take, as `bound` does.

    Whether they fit is a matter of how many there are and of their names, which are nearly always
    the same for a task.
    """
    try:
        _fits(task.func, len(args) + task.takes_context, tuple(kwargs))
    except TypeError:
        bound(task, args, kwargs)


@lru_cache(maxsize=4096)
def _fits(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> None:
    signature(function).bind(*[None] * count, **dict.fromkeys(names))


def with_defaults(
    task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call that fits, by their names, with those that nobody gave."""
    given = (None, *args) if task.takes_context else args
    call = signature(task.func).bind(*given, **kwargs)
    call.apply_defaults()
    return call.arguments


def by_name(task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Do what `with_defaults` does, with what `**` collects among the others."""
    arguments = with_defaults(task, args, kwargs)
    collected = [one.name for one in _parameters(task) if one.kind is one.VAR_KEYWORD]
    return {**arguments, **arguments.get(collected[0], {})} if collected else arguments


def of_row(path: str, args: str, kwargs: str) -> dict[str, Any] | None:
    """Return the arguments of a stored job by their names; None where nobody here can say them."""
    task = registry.find(path)
    if task is None:
        return None
    try:
        return by_name(task, payload.decode(args), payload.decode(kwargs))
    except (TypeError, ValueError):
        return None


def of_job(job: Any) -> dict[str, Any] | None:
    """Do what `of_row` does, for a row as a whole."""
    return of_row(job.task, job.args, job.kwargs)


def takes(task: compat.AnyTask, name: str) -> bool:
    """Return whether a call of a task may have an argument of this name."""
    parameters = _parameters(task)
    return name in names(task) or any(one.kind is one.VAR_KEYWORD for one in parameters)


def names(task: compat.AnyTask) -> list[str]:
    """Return the names of a task's arguments, without its context."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in _parameters(task) if one.kind not in variable]


def _parameters(task: compat.AnyTask) -> list[inspect.Parameter]:
    return list(signature(task.func).parameters.values())[1 if task.takes_context else 0 :]


@lru_cache(maxsize=4096)
def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return what a function takes; read once."""
    return inspect.signature(function)
