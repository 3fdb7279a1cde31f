"""The call: what one job hands to its function, which must fit before anything is stored."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from django_once import compat
from django_once.errors import shortened

# Positional arguments, and those with a name.
Call: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]


def checked_call(call: Any) -> Call:
    """Return what one member of `enqueue_many` says; refuse what is not a pair."""
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


def with_defaults(
    task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call that fits, by their names, with those that nobody gave."""
    given = (None, *args) if task.takes_context else args
    call = signature(task.func).bind(*given, **kwargs)
    call.apply_defaults()
    return call.arguments


@lru_cache(maxsize=4096)
def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return what a function takes; read once."""
    return inspect.signature(function)
