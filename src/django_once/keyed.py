"""Keyed tasks: of one key at most one job waits, and the one who replaces it is obeyed.

A key is a text, or a template that is filled from the arguments of the call: "poll:{pool_id}".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from django_once import calls, compat
from django_once.definitions import template
from django_once.errors import InvalidOption, shortened

WhileRunning = Literal["supersede", "queue_one"]
WHILE_RUNNING: Final = ("supersede", "queue_one")


def key_of(
    task: compat.AnyTask, said: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Return the key of a call: what was said, filled from its arguments; else the task's path."""
    key = said.get("key")
    if key is None:
        if said.get("perpetual") is None:
            raise InvalidOption(
                f"{task.module_path} has no key: say which, by {task.name}.using(key='…') or "
                "@task(key='…')."
            )
        return task.module_path
    if "{" not in key and "}" not in key:
        return str(key)
    return template.filled(key, calls.bound(task, args, kwargs), "key")


def add(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Store a job unless one of its key waits or runs; return the result of the one that does."""
    return _backend_of(task).enqueue_under_key(task, args, kwargs)


def replace(
    task: Any, args: Sequence[Any], kwargs: Mapping[str, Any], while_running: WhileRunning
) -> Any:
    """Store a job in place of what waits under its key; return its result."""
    if while_running not in WHILE_RUNNING:
        raise InvalidOption(
            f"while_running must be one of {', '.join(WHILE_RUNNING)}, got "
            f"{shortened(while_running)}."
        )
    return _backend_of(task).enqueue_under_key(task, args, kwargs, while_running)


def cancel(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """End what waits under a key, and ask what runs there to end; return how many jobs."""
    from django_once.models.series.add import stop

    backend = _backend_of(task)
    return stop(backend.database, backend.alias, backend.key_of(task, args, kwargs))


def get(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of the present job of a key, or None when it has none."""
    from django_once.models.series.add import present

    backend = _backend_of(task)
    job = present(backend.database, backend.alias, backend.key_of(task, args, kwargs))
    try:
        return None if job is None else backend.get_result(str(job))
    except compat.TaskResultDoesNotExist:
        # It was pruned; the series goes on counting.
        return None


def _backend_of(task: Any) -> Any:
    backend = task.get_backend()
    if not hasattr(backend, "enqueue_under_key"):
        raise compat.InvalidTask(
            f"Backend {task.backend!r} knows no keys: only jobs in the database of "
            "django_once.backend.DatabaseBackend have them."
        )
    return backend
