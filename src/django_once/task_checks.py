"""What tasks say of themselves that cannot be kept, or that nobody will ask for.

Part of `checks`, which says when these are asked. No database is touched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from inspect import unwrap
from typing import Any, Final

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.db import connections

from django_once import compat, declare
from django_once.definitions import registry
from django_once.definitions.options import EXACTLY_ONCE

SECONDS_SQLITE_WAITS: Final = 5.0
MOST_LISTED: Final = 5


def of_tasks(keepers: dict[str, str]) -> Iterator[CheckMessage]:
    """Yield what tasks promise and nobody keeps; `keepers` says which database a backend has."""
    for path, tasks in registry.ambiguous().items():
        yield Error(
            f"{len(tasks)} tasks have the path {path!r}, and a job keeps nothing else of its "
            f"task: {', '.join(_where(task) for task in tasks)}.",
            hint="Give each a function of its own, with a name of its own.",
            id="once.E008",
        )
    promising = [(task, said) for task in registry.tasks() if (said := declare.options_of(task))]
    for task, said in promising:
        if task.backend in keepers:
            yield from _long_writer(task, said, keepers[task.backend])
            yield from _writer_apart(task, said, keepers[task.backend])
    yield from _unkept([pair for pair in promising if pair[0].backend not in keepers])
    yield from _never_tasks()


def _where(task: compat.AnyTask) -> str:
    code = getattr(task.func, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(task.func)


def _long_writer(
    task: compat.AnyTask, said: dict[str, Any], database: str
) -> Iterator[CheckMessage]:
    timeout = said.get("timeout")
    if said.get("delivery") != EXACTLY_ONCE or timeout is None or database not in connections:
        return
    connection = connections[database]
    patience = connection.settings_dict["OPTIONS"].get("timeout", SECONDS_SQLITE_WAITS)
    if connection.vendor == "sqlite" and timeout.total_seconds() > patience:
        yield Caution(
            f"{task.module_path} is exactly_once and may run for {timeout}; SQLite has one writer, "
            f"and everybody else gives up waiting for it after {patience:g} seconds.",
            hint=f"Shorten its timeout, or raise DATABASES[{database!r}]['OPTIONS']['timeout'].",
            id="once.W008",
        )


def _writer_apart(
    task: compat.AnyTask, said: dict[str, Any], database: str
) -> Iterator[CheckMessage]:
    if said.get("delivery") == EXACTLY_ONCE and database != "default":
        yield Caution(
            f"{task.module_path} is exactly_once in database {database!r}, where its jobs are: "
            "what it writes to another one commits apart, and can repeat.",
            hint="Give it a backend in the database of its models; or silence once.W016.",
            id="once.W016",
        )


def _unkept(promising: list[tuple[compat.AnyTask, dict[str, Any]]]) -> Iterator[CheckMessage]:
    by_backend: dict[str, list[str]] = {}
    for task, said in promising:
        line = f"{task.module_path} ({', '.join(sorted(said))})"
        by_backend.setdefault(task.backend, []).append(line)
    for alias, lines in by_backend.items():
        more = f" and {len(lines) - MOST_LISTED} more" if len(lines) > MOST_LISTED else ""
        yield Caution(
            f"TASKS[{alias!r}] does not know what these tasks say of themselves, and keeps "
            f"nothing of it: {'; '.join(lines[:MOST_LISTED])}{more}.",
            hint="Only django_once.backend.DatabaseBackend keeps these promises. In tests with "
            "another backend nothing needs to be done.",
            id="once.W013",
        )


def _never_tasks() -> Iterator[CheckMessage]:
    for function in registry.functions_that_said("delivery", EXACTLY_ONCE):
        module = sys.modules.get(function.__module__)
        standing = vars(module).get(function.__name__) if module is not None else None
        # What is no function of its module can only be told from the task that it may be.
        if _bare(standing) is function and not _is_in_a_task(function, module):
            yield Caution(
                f"{function.__module__}.{function.__qualname__} is marked with @exactly_once and "
                "is no task: whoever calls it runs it as it is, with no promise.",
                hint="Put @task above or below @exactly_once.",
                id="once.W017",
            )


def _bare(standing: Any) -> Any:
    """Return the function that stands somewhere, without what was put around it."""
    return unwrap(standing) if callable(standing) else None


def _is_in_a_task(function: Callable[..., Any], module: Any) -> bool:
    known = [
        *registry.tasks(),
        *(it for it in vars(module).values() if isinstance(it, compat.Task)),
    ]
    return any(unwrap(task.func) is function for task in known)
