"""Steps: what a body has done once and will not do again, although it is tried again.

    with context.step("reserve") as step:
        if not step.is_done:
            step.result = reserve(order_id)
    charge(step.result)

The result goes on record when the block is left well, under the claim of the attempt: of an
attempt that no longer holds its job nothing is kept. Where the body is inside a transaction, the
record commits with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Self

from asgiref.sync import sync_to_async

from django_once import payload
from django_once.errors import InvalidOption, Superseded, shortened

if TYPE_CHECKING:
    from django_once.sql.values import Attempt

LONGEST_NAME: Final = 160
LONGEST_MESSAGE: Final = 255
_UNTAKEN: Final = object()


class Steps:
    """The steps of one attempt; what earlier attempts have done is read when it is first asked."""

    def __init__(self, database: str, attempt: Attempt, most_bytes: int) -> None:
        self._database = database
        self._attempt = attempt
        self._most_bytes = most_bytes
        self._taken: dict[str, str] | None = None
        self._named: set[str] = set()

    def named(self, name: object) -> Step:
        """Return a step that is about to be taken, or was; refuse a name that is used twice."""
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
            raise InvalidOption(
                f"A step has a name of 1 to {LONGEST_NAME} characters, got {shortened(name)}."
            )
        if name in self._named:
            raise InvalidOption(
                f"The step {name!r} is taken twice in one attempt, so the second would get the "
                "result of the first: give each a name of its own."
            )
        self._named.add(name)
        return Step(self, name)

    def result_of(self, name: str) -> Any:
        """Return the result that an earlier attempt has left, or that there is none."""
        from django_once.models.step import steps_of

        if self._taken is None:
            self._taken = steps_of(self._database, self._attempt.id)
        text = self._taken.get(name)
        return _UNTAKEN if text is None else payload.decode(text)

    def take(self, name: str, result: Any) -> None:
        """Put a step on record; raises Superseded when the job is another's."""
        from django_once.models.step import take

        attempt = self._attempt
        text = payload.encode(result, f"The result of step {name!r}", most_bytes=self._most_bytes)
        if not take(self._database, attempt.id, attempt.claim, name, text):
            raise Superseded(
                f"Attempt {attempt.attempt} of job {attempt.id} was ended by somebody else before "
                f"its step {name!r} was on record."
            )


class Step:
    """One step, between its beginning and its record."""

    def __init__(self, steps: Steps, name: str) -> None:
        self.name = name
        self._steps = steps
        self.is_done = False
        self.result: Any = None

    def __enter__(self) -> Self:
        found = self._steps.result_of(self.name)
        if found is not _UNTAKEN:
            self.is_done, self.result = True, found
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self.is_done:
            self._steps.take(self.name, self.result)
            self.is_done = True

    async def __aenter__(self) -> Self:
        return await sync_to_async(self.__enter__, thread_sensitive=True)()

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        await sync_to_async(self.__exit__, thread_sensitive=True)(kind, *rest)


def told(done: float, total: float | None, message: str) -> tuple[float, float | None, str]:
    """Return how far a body says it is; refuse what is no number."""
    return (
        _number(done, "done"),
        None if total is None else _number(total, "total"),
        str(message)[:LONGEST_MESSAGE],
    )


def _number(value: Any, name: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise InvalidOption(f"context.progress({name}=…) must be a number, got {shortened(value)}.")
    return float(value)
