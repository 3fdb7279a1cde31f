"""Who listens: which function hears what of a channel, and in which group.

A group handles each notification once: within it all listeners succeed together, or none has. Who
listens to a channel hears the channels made of it as well, told as far as the first one knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django_once.definitions.channel import (
    OWN_FIELDS,
    BaseChannel,
    TriggerChannel,
    carried,
    name_of,
)
from django_once.errors import InvalidOption

TIMINGS: Final = ("pre", "post")
OPERATIONS: Final = ("insert", "update", "delete")
EVENTS: Final = tuple(f"{timing}_{operation}" for timing in TIMINGS for operation in OPERATIONS)
# What a listener of a channel that is told by hand hears.
TOLD: Final = "told"


@dataclass(frozen=True, slots=True)
class Listener:
    """A function, and what it hears: some events of a channel, for one group."""

    channel: type[BaseChannel]
    function: Callable[..., Any]
    events: frozenset[str]
    group: str

    def told(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return what of a notification this function is called with."""
        names = _names(self.channel, self.function)
        return {name: values[name] for name in names if name in values}


_listeners: list[Listener] = []


def add(listener: Listener) -> None:
    """Remember a listener, after those before it; one that was loaded anew takes its own place."""
    refuse_signature(listener)
    for place, other in enumerate(_listeners):
        if _is_same(listener, other):
            _listeners[place] = listener
            return
    _listeners.append(listener)


def remove(channel: type[BaseChannel]) -> None:
    """Forget who listens to a channel, for tests that declare some."""
    _listeners[:] = [one for one in _listeners if one.channel is not channel]


def listeners_of(
    channel: type[BaseChannel], group: str | None = None, event: str | None = None
) -> list[Listener]:
    """Return who hears this channel, in the order in which they were declared."""
    return [
        one
        for one in _listeners
        if issubclass(channel, one.channel)
        and (group is None or one.group == group)
        and (event is None or event in one.events)
    ]


def groups_heard(channel: type[BaseChannel]) -> list[str]:
    """Return the groups of a channel in which somebody listens."""
    return sorted({one.group for one in listeners_of(channel)})


def events_heard(channel: type[BaseChannel]) -> dict[str, tuple[str, ...]]:
    """Return which groups hear which events of a channel's model, as its definition orders them."""
    found: dict[str, set[str]] = {}
    for one in listeners_of(channel):
        for event in one.events & set(EVENTS):
            found.setdefault(event, set()).add(one.group)
    return {event: tuple(sorted(found[event])) for event in EVENTS if event in found}


def refuse_signature(listener: Listener) -> None:
    """Refuse a function that could not be called with what the channel carries."""
    function, channel = listener.function, listener.channel
    if not callable(function):
        raise InvalidOption(f"A listener is a function, got {function!r}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    names = _names(channel, function)
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        path = getattr(function, "__qualname__", repr(function))
        raise InvalidOption(
            f"Listener {path}{signature} does not fit channel {name_of(channel)}, which calls it "
            f"with {', '.join(names) or 'nothing'}: {error}."
        ) from None


def _names(channel: Any, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of what a function is called with."""
    return _names_known(channel, function)


@lru_cache(maxsize=4096)
def _names_known(channel: Any, function: Callable[..., Any]) -> tuple[str, ...]:
    names = carried(channel)
    if _is_told(channel) and "context" not in inspect.signature(function).parameters:
        return tuple(name for name in names if name != "context")
    return names


def _is_told(channel: type[BaseChannel]) -> bool:
    return issubclass(channel, TriggerChannel) and set(OWN_FIELDS) <= set(carried(channel))


def _is_same(one: Listener, other: Listener) -> bool:
    """Return whether the same lines made both functions: their module was loaded anew."""
    newer, older = (getattr(it.function, "__code__", None) for it in (one, other))
    if newer is None or older is None or one.function is other.function:
        return False
    if any(getattr(it.function, "__closure__", None) for it in (one, other)):
        return False
    here = (newer.co_filename, newer.co_firstlineno)
    return (older.co_filename, older.co_firstlineno) == here and (
        (name_of(one.channel), one.events, one.group)
        == (name_of(other.channel), other.events, other.group)
    )
