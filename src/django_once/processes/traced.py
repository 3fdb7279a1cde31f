"""Attempts that somebody follows: what their jobs carry is read, and a tracer stands around them.

Nothing of this is met where no tracer was put.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from django_once import tracing
from django_once.models.job.look import carried_by
from django_once.processes import ends, hygiene
from django_once.processes.ends import Body, Ended
from django_once.stamps import TRACE


def run(body: Body, call: Callable[[Body], Ended]) -> Ended:
    """Call a body under the project's tracer."""
    assert tracing.tracer is not None
    with tracing.tracer.attempting(body.attempt, _trace_of(body)) as note:
        ended = call(body)
        note(ends.word_of(ended, set()), ended.exception)
    return ended


async def arun(body: Body, call: Callable[[Body], Awaitable[Ended]]) -> Ended:
    """Do what `run` does, in an event loop, which a question to the database would hold up."""
    assert tracing.tracer is not None
    trace = await asyncio.get_running_loop().run_in_executor(None, _trace_apart, body)
    with tracing.tracer.attempting(body.attempt, trace) as note:
        ended = await call(body)
        note(ends.word_of(ended, set()), ended.exception)
    return ended


def _trace_apart(body: Body) -> dict[str, str]:
    try:
        return _trace_of(body)
    finally:
        hygiene.clean()


def _trace_of(body: Body) -> dict[str, str]:
    carried = carried_by(body.backend.settings.database, body.attempt.id)
    trace = carried.get(TRACE)
    return trace if isinstance(trace, dict) else {}
