"""Terms: what a job's row says of the limits and shares that its task is under, and of its name.

The row says it itself, since whoever admits a job may not have its code, and since a limit that
changes with a deploy holds for the jobs that are enqueued from then on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django_once import calls, compat, payload
from django_once.declare import options_of
from django_once.definitions import flow, template, unique

LONGEST_RULE = 1_000


def terms_of(
    task: compat.AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a job of this call has to say of what it must pass; most have nothing."""
    said = options_of(task)
    if said.keys().isdisjoint(flow.NAMES):
        return {}
    arguments = calls.with_defaults(task, args, kwargs)
    return {**_gate(task, said, arguments), **_name(task, said, arguments)}


def uniqueness_of(task: compat.AnyTask) -> unique.Unique | None:
    """Return the uniqueness of a task's jobs, or None."""
    return unique.named(options_of(task), task.module_path)


def _gate(
    task: compat.AnyTask, said: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, str]:
    terms: dict[str, str] = {}
    rule: dict[str, Any] = {}
    if "fair_key" in said:
        key = terms["fair_key"] = template.filled(said["fair_key"], arguments, "fair_key")
        terms["gate"] = f"fair:{task.queue_name}:{task.priority}:{key}"
        weight = said.get("weight", 1)
        rule["weight"] = weight.get(key, 1) if isinstance(weight, Mapping) else weight
    limit = said.get("limit")
    if limit is not None:
        rule |= limit.rule
        terms["limit_key"] = template.filled(limit.key, arguments, "The key of a Limit")
        terms["gate"] = f"limit:{terms['limit_key']}"
    if rule:
        terms["rule"] = payload.write(rule, "rule", most_bytes=LONGEST_RULE)
    return terms


def _name(
    task: compat.AnyTask, said: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    wanted = unique.named(said, task.module_path)
    if wanted is None:
        return {}
    if wanted.key is None:
        name = json.dumps(arguments, sort_keys=True, default=str)
    else:
        name = template.filled(wanted.key, arguments, "The key of a Unique")
    terms: dict[str, Any] = {"unique_hash": wanted.hash_of(task.backend, task.module_path, name)}
    if wanted.window is not None:
        terms["unique_for"] = wanted.window.total_seconds()
    if "debounce" in said and task.run_after is None:
        terms["run_after"] = said["debounce"]
    return terms
