"""Stamps: what travels with a job beside its arguments, in its `meta`.

A mark that some of its arguments are hidden, for those who look at it without its code; and the
trace that it belongs to. Most jobs have neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django_once import compat, payload, tracing
from django_once.redaction import MARK

NOTHING: Final = "{}"
TRACE: Final = "trace"
LONGEST: Final = 10_000


def stamp(job: UUID, task: compat.AnyTask, said: Mapping[str, Any]) -> str:
    """Return what a new job of this task carries, as JSON."""
    if tracing.tracer is None and "redact" not in said:
        return NOTHING
    carried: dict[str, Any] = {}
    if "redact" in said:
        carried[MARK] = True
    if tracing.tracer is not None:
        trace = tracing.tracer.enqueued(job, task.module_path, task.queue_name)
        if trace:
            carried[TRACE] = dict(trace)
    return payload.write(carried, "meta", most_bytes=LONGEST)
