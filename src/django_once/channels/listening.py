"""Listening: a function is called for each notification of a channel.

    @post_save_listener(AuthorTriggerChannel, group="search")
    def index(old: Author | None, new: Author) -> None: ...

Of the changes of a model a listener names the events that it hears, and those triggers are there
after the next `migrate`. The function stays what it is, and can be called as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from django.db.models import Q

from django_once.channels import handling
from django_once.definitions import listeners
from django_once.definitions.channel import (
    DEFAULT_GROUP,
    BaseChannel,
    TriggerChannel,
    is_abstract,
    located,
    name_of,
    words_of,
)
from django_once.definitions.listeners import EVENTS, OPERATIONS, TIMINGS, TOLD, Listener
from django_once.errors import InvalidOption, shortened

Hearing = TypeVar("Hearing", bound=Callable[..., Any])


class ListenerFilterProvider(Protocol):
    """What LISTENER_FILTER names: which stored notifications this process handles."""

    def get_filter(self) -> Q:
        """Return a condition on `Notification`."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a channel is told of a change: "pre" or "post", and of which operations."""

    timing: str
    operations: tuple[str, ...]

    def __init__(self, timing: str, *operations: str) -> None:
        if timing not in TIMINGS or not operations or not set(operations) <= set(OPERATIONS):
            raise InvalidOption(
                f"Trigger takes 'pre' or 'post', then some of {', '.join(OPERATIONS)}, got "
                f"{shortened((timing, *operations))}."
            )
        object.__setattr__(self, "timing", timing)
        object.__setattr__(self, "operations", operations)

    @property
    def events(self) -> frozenset[str]:
        """The events that it tells of."""
        return frozenset(f"{self.timing}_{operation}" for operation in self.operations)


def listener(
    channel: type[BaseChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear a channel: what it is told, or every change of its model after it."""
    meant = located(channel)
    is_of_model = issubclass(meant, TriggerChannel)
    events = [event for event in EVENTS if event.startswith("post")] if is_of_model else [TOLD]
    return _hearing(meant, events, group)


def trigger_listener(
    channel: type[TriggerChannel] | str, trigger: Trigger, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear the changes of a model that this trigger tells of."""
    meant = located(channel)
    if not issubclass(meant, TriggerChannel):
        raise InvalidOption(
            f"Channel {name_of(meant)} has no model whose changes could be heard: it is a Channel, "
            "so listen to it with @listener."
        )
    if not isinstance(trigger, Trigger):
        raise InvalidOption(
            f"trigger must be a Trigger such as Trigger('post', 'insert'), got "
            f"{shortened(trigger)}."
        )
    return _hearing(meant, trigger.events, group)


def pre_insert_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that are about to be inserted."""
    return trigger_listener(channel, Trigger("pre", "insert"), group=group)


def post_insert_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that were inserted."""
    return trigger_listener(channel, Trigger("post", "insert"), group=group)


def pre_update_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that are about to be updated."""
    return trigger_listener(channel, Trigger("pre", "update"), group=group)


def post_update_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that were updated."""
    return trigger_listener(channel, Trigger("post", "update"), group=group)


def pre_delete_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that are about to be deleted."""
    return trigger_listener(channel, Trigger("pre", "delete"), group=group)


def post_delete_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that were deleted."""
    return trigger_listener(channel, Trigger("post", "delete"), group=group)


def pre_save_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that are about to be inserted or updated."""
    return trigger_listener(channel, Trigger("pre", "insert", "update"), group=group)


def post_save_listener(
    channel: type[TriggerChannel] | str, *, group: str = DEFAULT_GROUP
) -> Callable[[Hearing], Hearing]:
    """Let a function hear of rows that were inserted or updated."""
    return trigger_listener(channel, Trigger("post", "insert", "update"), group=group)


def _hearing(
    channel: type[BaseChannel], events: Iterable[str], group: str
) -> Callable[[Hearing], Hearing]:
    if not is_abstract(channel):
        groups = words_of(channel).groups
        if group not in groups:
            raise InvalidOption(
                f"Channel {name_of(channel)} has no group {group!r}: it has {', '.join(groups)}. "
                "Groups are named by the channel, since each gets a job of its own."
            )

    def heard(function: Hearing) -> Hearing:
        listeners.add(Listener(channel, function, frozenset(events), group))
        handling.declare_tasks(channel)
        return function

    return heard
