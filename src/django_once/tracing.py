"""Where a tracer stands, if the project has one: until then nothing is asked and nothing costs.

`django_once.contrib.otel` puts one here. The rooms above know it by what it does and not by whose
it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Tracer(Protocol):
    """What follows a job from its enqueue to its attempts."""

    def enqueued(self, job: object, task: str, queue: str) -> Mapping[str, str]:
        """Tell that a job is stored; return what its attempts must carry to be linked to it."""

    def attempting(
        self, attempt: Any, carried: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[str, BaseException | None], None]]:
        """Return a context around an attempt's body; what it yields is told how it ended."""


tracer: Tracer | None = None


def follow(by: Tracer | None) -> None:
    """Let this tracer follow every job from now on, or none."""
    global tracer
    tracer = by
