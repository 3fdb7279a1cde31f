"""Which attempt the code that runs here belongs to, for those who write logs.

It is remembered only after somebody has asked for it once: a body starts every few microseconds.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

are_asked = False

_attempt: ContextVar[Any] = ContextVar("once_attempt", default=None)


def ask() -> None:
    """Remember attempts from now on."""
    global are_asked
    are_asked = True


def enter(attempt: Any) -> Token[Any] | None:
    """Say whose code runs from here on, if somebody asks."""
    return _attempt.set(attempt) if are_asked else None


def leave(mark: Token[Any] | None) -> None:
    """Say that it has ended."""
    if mark is not None:
        _attempt.reset(mark)


def attempt() -> Any:
    """Return the attempt whose code runs here, or None."""
    return _attempt.get()
