"""Handling a notification: the task of a channel's group, and how its listeners are called.

A stored notification is a job. Its task has no name that somebody wrote: each group of a channel
has one, whose path is the channel's and the group's. So retries, pauses, timeouts and dead letters
are those of any job, and a worker that does not know the channel leaves its notifications alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from asgiref.sync import async_to_sync, iscoroutinefunction

from django_once.channels import filtering, rows, schema
from django_once.declare import Task
from django_once.definitions import carrying, listeners, registry
from django_once.definitions.channel import (
    BaseChannel,
    TriggerChannel,
    Words,
    channels,
    family,
    words_of,
)

# What a job's arguments say of a notification, beside what it carries.
EVENT: Final = "event"
SCHEMA: Final = "schema"
CONTEXT: Final = "context"
CARRIED: Final = "carried"


def declare_tasks(channel: type[BaseChannel] | None = None) -> None:
    """Let this process run the notifications of a channel and those made of it; or of all."""
    for one in channels() if channel is None else family(channel):
        if not one.lock_notifications or (issubclass(one, TriggerChannel) and one.model is None):
            continue
        words = words_of(one)
        for group in listeners.groups_heard(one):
            _declare(one, words, group)


def call_listeners(channel: type[BaseChannel], group: str | None, told: Mapping[str, Any]) -> int:
    """Call whoever hears this, in the order of their declaration; return how many.

    `told` is what a trigger or `notify` wrote. Raises what a listener raises.
    """
    event = told.get(EVENT, listeners.TOLD)
    hearers = listeners.listeners_of(channel, group, event)
    if not hearers:
        return 0
    values = values_of(channel, told)
    for hearer in hearers:
        function: Callable[..., Any] = hearer.function
        if iscoroutinefunction(function):
            function = async_to_sync(function)
        function(**hearer.told(values))
    return len(hearers)


def values_of(channel: type[BaseChannel], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a notification carries, as its listeners see it."""
    if not issubclass(channel, TriggerChannel):
        return carrying.read(channel, told[CARRIED])
    model, database = rows.model_of(channel), rows.database_of(channel)
    old, new = told.get("old"), told.get("new")
    return {
        "old": None if old is None else rows.instance(model, old, database),
        "new": None if new is None else rows.instance(model, new, database),
        "context": _context(told.get(CONTEXT)),
    }


def _context(said: Any) -> dict[str, Any]:
    said = json.loads(said) if isinstance(said, str) and said else said
    return said if isinstance(said, dict) else {}


def _declare(channel: type[BaseChannel], words: Words, group: str) -> None:
    """Register the task of a group, in the place of the one that was there before."""

    is_filtered = filtering.is_set(words.backend)

    def tell(*given: Any, **told: Any) -> None:
        schema.refuse_newer(channel, told.get(SCHEMA))
        if is_filtered:
            filtering.refuse_others(words.backend, given[0].task_result.id)
        call_listeners(channel, group, told)

    module, _, name = words.path_of(group).rpartition(".")
    tell.__module__, tell.__qualname__, tell.__name__ = module, name, name
    said: dict[str, Any] = {
        "func": tell, "queue_name": words.queue, "priority": words.priority,
        "backend": words.backend, "delivery": words.delivery, "retry": words.retry,
        "timeout": words.timeout, "takes_context": is_filtered,
    }  # fmt: skip
    task = object.__new__(Task)
    # Unchecked: its queue is the channel's own, and no function of a module has its name.
    for field in fields(Task):
        default = None if field.default is MISSING else field.default
        object.__setattr__(task, field.name, said.get(field.name, default))
    known = registry.find(task.module_path)
    registry.redeclare(known if known is not None else task, task)
