"""Declarations: what tasks say of themselves, written down for SQL that enqueues.

`once_enqueue` makes the row that Python would have made. What it must know of a task (budgets,
limits, names of arguments) stands in a table, which `migrate` and the start of a worker bring up
to date. Only PostgreSQL has the function.
"""

from __future__ import annotations

import inspect
import json
import string
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from django.db import connections

from django_once import calls, clock, compat, payload
from django_once.backend import DatabaseBackend
from django_once.declare import options_of
from django_once.definitions import registry, unique
from django_once.definitions.options import AT_LEAST_ONCE, AT_MOST_ONCE
from django_once.models.declaration import declare, has_table, renew_functions
from django_once.redaction import MARK

KINDS: Final = {
    inspect.Parameter.POSITIONAL_ONLY: "placed",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.KEYWORD_ONLY: "named",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}
LONGEST: Final = 1_000_000
LONGEST_PATH: Final = 255


def publish(backend: DatabaseBackend) -> int:
    """Write down what this backend's tasks say; count those that have said something else."""
    if not has_functions(backend):
        return 0
    said = {task.module_path: _text(said_of(task)) for task in _tasks_of(backend)}
    return declare(backend.database, backend.alias, [("", _text(_house(backend))), *said.items()])


def migrated(database: str) -> None:
    """Bring what SQL needs for enqueuing up to date in one database, after its migrations."""
    # Migrated to zero, it has gone.
    if connections[database].vendor != "postgresql" or not has_table(database):
        return
    renew_functions(database)
    for alias in compat.task_backends:
        # Django's own check says it of those whose class cannot be loaded.
        with suppress(compat.InvalidTaskBackend):
            backend: Any = compat.task_backends[alias]
            if isinstance(backend, DatabaseBackend) and backend.settings.database == database:
                publish(backend)


def has_functions(backend: DatabaseBackend) -> bool:
    """Return whether jobs of this backend can be enqueued by SQL."""
    return connections[backend.database].vendor == "postgresql"


def said_of(task: compat.AnyTask) -> dict[str, Any]:
    """Return what a row of this task must say, and what it takes to say it."""
    said = options_of(task)
    delivery = said.get("delivery", AT_LEAST_ONCE)
    retry = said.get("retry")
    found: dict[str, Any] = {
        "queue": task.queue_name,
        "priority": int(task.priority),
        "delivery": delivery,
        "parameters": _parameters(task),
        "max_attempts": 1 if delivery == AT_MOST_ONCE else retry and retry.max_attempts,
        "max_deaths": said.get("max_deaths"),
        "timeout": _seconds(said.get("timeout")),
        "expires": _seconds(said.get("expires")),
        "debounce": _seconds(said.get("debounce")),
        # Whoever looks at such a job without its code must know that some of it is hidden.
        "meta": _text({MARK: True}) if "redact" in said else None,
        **_gate(said),
        **_unique(said, task.module_path),
        **_series(said, task.module_path),
    }
    return {name: value for name, value in found.items() if value is not None}


def _tasks_of(backend: DatabaseBackend) -> list[compat.AnyTask]:
    # The first of a path is the one that a worker would run. A colon stands in the path of a
    # channel's group, which is no task that somebody enqueues.
    return [
        task
        for task in reversed(registry.tasks())
        if task.backend == backend.alias
        and len(task.module_path) <= LONGEST_PATH
        and ":" not in task.module_path
    ]


def _house(backend: DatabaseBackend) -> dict[str, Any]:
    settings = backend.settings
    return {
        "queues": sorted(backend.queues),
        "max_attempts": settings.retry.max_attempts if settings.retry else 1,
        "max_deaths": settings.deaths,
        "max_arguments": settings.max_arguments,
        "wakes": settings.wakeup == "auto",
    }


def _parameters(task: compat.AnyTask) -> list[dict[str, Any]]:
    parameters = [
        {"name": name, "kind": KINDS[parameter.kind], **_default(parameter)}
        for name, parameter in calls.signature(task.func).parameters.items()
    ]
    if task.takes_context:
        parameters[0] = {"name": parameters[0]["name"], "kind": "context"}
    return parameters


def _default(parameter: inspect.Parameter) -> dict[str, Any]:
    if parameter.default is parameter.empty:
        return {}
    try:
        return {"default": json.loads(json.dumps(parameter.default, default=str, allow_nan=False))}
    except (TypeError, ValueError):
        # It only stands in names that are made of all arguments.
        return {"default": str(parameter.default)}


def _gate(said: Mapping[str, Any]) -> dict[str, Any]:
    limit, weight = said.get("limit"), said.get("weight", 1)
    own = limit.rule if limit is not None else {}
    found: dict[str, Any] = {}
    if "fair_key" in said:
        found["fair_key"] = _parts(said["fair_key"])
        if isinstance(weight, Mapping):
            found["rules"] = {key: _text({"weight": one, **own}) for key, one in weight.items()}
            weight = 1
        own = {"weight": weight, **own}
    if limit is not None:
        found["limit"] = _parts(limit.key)
    return {**found, "rule": _text(own)} if own else found


def _unique(said: Mapping[str, Any], path: str) -> dict[str, Any]:
    wanted = unique.named(said, path)
    if wanted is None:
        return {}
    found: dict[str, Any] = {"until": wanted.until[0], "on_conflict": wanted.on_conflict}
    if wanted.key is not None:
        found["key"] = _parts(wanted.key)
    if wanted.window is not None:
        found["window"] = wanted.window.total_seconds()
    return {"unique": found}


def _series(said: Mapping[str, Any], path: str) -> dict[str, Any]:
    going = said.get("perpetual")
    key = said.get("key")
    if key is None and going is None:
        return {}
    # What names no arguments is taken as it stands, and so is the path of a task.
    parts = [path] if key is None else _parts(key) if "{" in key or "}" in key else [key]
    return {"key": parts, "every": going and going.every.total_seconds()}


def _parts(template: str) -> Any:
    """Return a name as texts and places, or its text where a place is more than an argument."""
    if "{" not in template and "}" not in template:
        return [template]
    parts: list[Any] = []
    for text, place, form, conversion in string.Formatter().parse(template):
        if text:
            parts.append(text)
        if place is None:
            continue
        if form or conversion or not place.isidentifier():
            return template
        parts.append({"place": place})
    return parts


def _seconds(length: Any) -> float | None:
    return None if length is None else clock.duration(length, "a length").total_seconds()


def _text(said: Any) -> str:
    return payload.write(said, "a declaration", most_bytes=LONGEST)
