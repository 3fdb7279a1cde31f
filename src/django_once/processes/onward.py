"""What a perpetual body says of the job that comes after its own: when, with what, or that none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django_once import calls, clock, compat, declare, payload
from django_once.backend import DatabaseBackend
from django_once.errors import InvalidOption, shortened
from django_once.processes.running import Running
from django_once.sql.values import Next


def reschedule(
    backend: DatabaseBackend, task: compat.AnyTask, running: Running, args: Sequence[Any],
    kwargs: Mapping[str, Any], after: timedelta | float | str | None, at: datetime | None,
) -> None:  # fmt: skip
    """Keep what a body wishes for the next job; it is stored with the end of this attempt."""
    _refuse_unless_perpetual(task, "reschedule")
    if (after is None) == (at is None):
        raise InvalidOption(
            "context.reschedule(…) takes one of after='5s' and at=<a moment>, got "
            f"after={shortened(after)} and at={shortened(at)}."
        )
    given = named = None
    if args or kwargs:
        calls.bound(task, args, kwargs)
        most = backend.settings.max_arguments
        given = payload.encode(list(args), "args", most_bytes=most)
        named = payload.encode(dict(kwargs), "kwargs", most_bytes=most)
    seconds = None if after is None else clock.duration(after, "after").total_seconds()
    moment = None if at is None else clock.moment(at, "at")
    running.next = Next(at=moment, after=seconds, args=given, kwargs=named)


def stop(task: compat.AnyTask, running: Running) -> None:
    """Let no job come after this one; whoever adds one begins again."""
    _refuse_unless_perpetual(task, "stop")
    running.next = Next(stops=True)


def _refuse_unless_perpetual(task: compat.AnyTask, verb: str) -> None:
    if "perpetual" not in declare.options_of(task):
        raise InvalidOption(
            f"context.{verb}() speaks of the next job, and {task.module_path} has none: declare it "
            "with @perpetual(every='…')."
        )
