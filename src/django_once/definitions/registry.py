"""The one register of tasks: a row may only run what this process declared at start-up.

A path that stands in a row is never imported: whoever can write the table must not choose what
is loaded. It is looked up here, or among the modules that are loaded already, and only a Task
is accepted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import unwrap
from typing import Any

from django_once import compat
from django_once.definitions import options

_tasks: dict[str, list[compat.AnyTask]] = {}
_options: dict[Callable[..., Any], Mapping[str, Any]] = {}


def register(task: compat.AnyTask) -> None:
    """Remember a task under its path; changed copies of it (`using`) are not kept."""
    known = _tasks.setdefault(task.module_path, [])
    for place, other in enumerate(known):
        if other.func is task.func and _alike(other, task):
            return
        if other.func is not task.func and _is_reloaded(other.func, task.func):
            known[place] = task
            return
    known.append(task)


def redeclare(task: compat.AnyTask, anew: compat.AnyTask) -> None:
    """Let a task stand where another of the same function stood, which nobody will see again."""
    known = _tasks.setdefault(task.module_path, [])
    _tasks[task.module_path] = [other for other in known if other is not task]
    register(anew)


def remember_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Keep what was said of a function beside it, for a Task that has no room for it, or that
    is not made yet."""
    _options[function] = {**_options.get(function, {}), **options}


def tasks() -> list[compat.AnyTask]:
    """Return every task that was registered."""
    return [task for known in _tasks.values() for task in known]


def functions_that_said(name: str, value: Any) -> list[Callable[..., Any]]:
    """Return the functions of which this was said, whether a task was made of them or not."""
    return [function for function, said in _options.items() if said.get(name) == value]


def options_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return what was said of a function by `remember_options`, or of one that it wraps."""
    known = _options.get(function)
    while known is None and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
        known = _options.get(function)
    return known or {}


def find(path: str) -> compat.AnyTask | None:
    """Return the task that stands at this path in a loaded module, or None."""
    standing = _standing_at(path)
    if standing is not None:
        return standing
    known = _tasks.get(path)
    return known[0] if known else None


def paths() -> frozenset[str]:
    """Return the paths of all tasks that were registered."""
    return frozenset(_tasks)


def ambiguous() -> dict[str, list[compat.AnyTask]]:
    """Return the paths under which different functions, or one with different options, stand."""
    return {path: known for path, known in _tasks.items() if len(known) > 1}


def _alike(one: compat.AnyTask, other: compat.AnyTask) -> bool:
    """Return whether a worker may run either of these for a row that names their path.

    A key is a word of the call (`using`), and stands in the row.
    """
    return all(
        getattr(one, name, None) == getattr(other, name, None)
        for name in ("takes_context", *options.NAMES)
        if name != "key"
    )


def _is_reloaded(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Return whether a module was loaded anew: the same lines made both functions."""
    older, newer = (getattr(unwrap(function), "__code__", None) for function in (one, other))
    if older is None or newer is None:
        return False
    here = (newer.co_filename, newer.co_firstlineno)
    return (older.co_filename, older.co_firstlineno) == here


def _standing_at(path: str) -> compat.AnyTask | None:
    # Most tasks stand in a module by their name, and a worker asks for each job.
    inside, _, last = path.rpartition(".")
    module = sys.modules.get(inside)
    if module is not None:
        return _as_task(vars(module).get(last))
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is None:
            continue
        found: Any = module
        for name in parts[length:]:
            # vars() and not getattr(): a module's __getattr__ may import.
            found = vars(found).get(name) if hasattr(found, "__dict__") else None
        return _as_task(found)
    return None


def _as_task(found: Any) -> compat.AnyTask | None:
    return found if isinstance(found, compat.Task) else None
