"""The spans: by the conventions for messaging, a producer's and a consumer's, linked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from django_once import __version__, payload

SYSTEM: Final = "django_once"
FAILED: Final = "failed"


class Spans:
    """A tracer of jobs that tells OpenTelemetry."""

    def __init__(self) -> None:
        # It finds the project's provider when the first span begins, also one that is set later.
        self._tracer = trace.get_tracer(SYSTEM, __version__)

    def enqueued(self, job: object, task: str, queue: str) -> Mapping[str, str]:
        """Tell that a job is stored; return the trace that its attempts are linked to."""
        carried: dict[str, str] = {}
        told = self._attributes("enqueue", "send", task, queue, job)
        with self._tracer.start_as_current_span(
            f"enqueue {queue}", kind=SpanKind.PRODUCER, attributes=told
        ):
            propagate.inject(carried)
        return carried

    @contextmanager
    def attempting(
        self, attempt: Any, carried: Mapping[str, str]
    ) -> Iterator[Callable[[str, BaseException | None], None]]:
        """Make a span around the body of an attempt, linked to that of its enqueue."""
        enqueued = trace.get_current_span(propagate.extract(carried, Context()))
        links = [Link(enqueued.get_span_context())] if _is_valid(enqueued) else []
        told = self._attributes("attempt", "process", attempt.task, attempt.queue, attempt.id)
        told |= {
            "django_once.attempt": attempt.attempt, "django_once.fence": attempt.fence,
            "django_once.delivery": attempt.delivery,
        }  # fmt: skip
        with self._tracer.start_as_current_span(
            f"attempt {attempt.queue}", Context(), kind=SpanKind.CONSUMER, attributes=told,
            links=links, record_exception=False, set_status_on_exception=False,
        ) as span:  # fmt: skip

            def note(outcome: str, exception: BaseException | None) -> None:
                span.set_attribute("django_once.outcome", outcome)
                if exception is not None:
                    # Its class alone: what it says may hold an argument.
                    path = payload.class_path(exception)
                    span.set_attribute("error.type", path)
                    span.set_status(Status(StatusCode.ERROR, path))

            yield note

    def _attributes(
        self, name: str, kind: str, task: str, queue: str, job: object
    ) -> dict[str, Any]:
        return {
            "messaging.system": SYSTEM, "messaging.operation.name": name,
            "messaging.operation.type": kind, "messaging.destination.name": queue,
            "messaging.message.id": str(job), "django_once.task": task,
        }  # fmt: skip


def _is_valid(span: trace.Span) -> bool:
    return bool(span.get_span_context().is_valid)
