"""The channel: a typed stream of notifications, declared as a dataclass.

    @dataclass
    class AuthorTriggerChannel(TriggerChannel):
        model = Author
        lock_notifications = True

With `lock_notifications` each notification is stored, as a job of each listening group, and handled
once by each. Without, it is broadcast: whoever listens now hears it, and nobody keeps it.

What a class says of itself stands in attributes without annotation; what a notification carries in
fields, which have one. The words are read when they are needed, so a class may say them late.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Final, TypeAlias

from django_once import clock
from django_once.definitions.options import AT_MOST_ONCE, DELIVERIES, EXACTLY_ONCE
from django_once.definitions.retry import Retry
from django_once.errors import ChannelNotFound, InvalidOption, shortened

Duration: TypeAlias = timedelta | float | str

DEFAULT_GROUP: Final = "default"
# Together they are the path of a job's task, for which a row has 255 characters.
LONGEST_NAME: Final = 200
LONGEST_GROUP: Final = 50
LONGEST_QUEUE: Final = 64
# From a second to half an hour, and an hour in all: as long as a bad deploy may last.
PATIENT: Final = Retry(max_attempts=12, base="1s", cap="30m")
OWN_FIELDS: Final = ("old", "new", "context")

_channels: dict[str, type[BaseChannel]] = {}


def name_of(channel: type[BaseChannel]) -> str:
    """Return what notifications and commands call a channel.

    Not by its method, which a field of that name would hide.
    """
    return f"{channel.__module__}.{channel.__qualname__}"


@dataclass
class BaseChannel:
    """What both kinds of channels say of themselves."""

    # Has no notifications of its own; who listens to it hears those of its subclasses.
    abstract: ClassVar[bool] = True
    lock_notifications: ClassVar[bool] = False
    groups: ClassVar[tuple[str, ...]] = (DEFAULT_GROUP,)
    delivery: ClassVar[str] = EXACTLY_ONCE
    retention: ClassVar[Duration | None] = None
    order_by: ClassVar[str | tuple[str, ...] | None] = None
    retry: ClassVar[Retry | None] = PATIENT
    timeout: ClassVar[Duration | None] = None
    queue_name: ClassVar[str | None] = None
    priority: ClassVar[int] = 0
    backend: ClassVar[str] = "default"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _channels[name_of(cls)] = cls

    @classmethod
    def name(cls) -> str:
        """Return the dotted path of this class: what notifications and commands call it."""
        return name_of(cls)


@dataclass
class Channel(BaseChannel):
    """A channel of whatever `notify` is told: its fields are what a notification carries."""

    abstract: ClassVar[bool] = True


@dataclass
class TriggerChannel(BaseChannel):
    """A channel of the changes of a model, which triggers of the database tell."""

    abstract: ClassVar[bool] = True
    # A model, or "app_label.ModelName".
    model: ClassVar[Any] = None

    old: Any
    new: Any
    context: dict[str, Any] | None = None


WORDS: Final = (
    "abstract", "lock_notifications", "groups", "delivery", "retention", "order_by", "retry",
    "timeout", "queue_name", "priority", "backend",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a channel says of itself, read and checked."""

    name: str
    is_stored: bool
    groups: tuple[str, ...]
    delivery: str
    retention: timedelta | None
    order_by: tuple[str, ...]
    retry: Retry | None
    timeout: timedelta | None
    queue: str
    priority: int
    backend: str

    @property
    def kept_for(self) -> float:
        """How many seconds a notification stays after it was handled."""
        return self.retention.total_seconds() if self.retention is not None else 0.0

    @property
    def max_attempts(self) -> int:
        """How often a listener is called before a notification is a dead letter."""
        is_once = self.delivery == AT_MOST_ONCE or self.retry is None
        return 1 if is_once or self.retry is None else self.retry.max_attempts

    def path_of(self, group: str) -> str:
        """Return the path of the task under which a group's notifications are jobs."""
        return f"{self.name}:{group}"


def is_abstract(channel: type[BaseChannel]) -> bool:
    """Return whether only subclasses of this channel have notifications."""
    return bool(vars(channel).get("abstract", False))


def channels() -> list[type[BaseChannel]]:
    """Return every channel that was declared and has notifications of its own."""
    return [_channels[name] for name in sorted(_channels) if not is_abstract(_channels[name])]


def forget(channel: type[BaseChannel]) -> None:
    """Let a channel be unknown again, for tests that declare some."""
    _channels.pop(name_of(channel), None)


def located(channel: Any) -> type[BaseChannel]:
    """Return the channel that is meant by a class or by its name."""
    if isinstance(channel, type) and issubclass(channel, BaseChannel):
        return channel
    if not isinstance(channel, str):
        raise ChannelNotFound(
            f"A channel is a class of Channel or TriggerChannel, or its path, got "
            f"{shortened(channel)}."
        )
    if channel in _channels:
        return _channels[channel]
    raise ChannelNotFound(f"There is no channel {shortened(channel)}. {_nearest(channel)}")


def family(channel: type[BaseChannel]) -> Iterator[type[BaseChannel]]:
    """Yield the channels that are meant by one: itself and those made of it."""
    for one in channels():
        if issubclass(one, channel):
            yield one


def words_of(channel: type[BaseChannel]) -> Words:
    """Return what a channel says of itself; refuse what cannot be meant."""
    name = name_of(channel)
    _refuse_shape(channel, name)
    try:
        return Words(
            name=name,
            is_stored=bool(channel.lock_notifications),
            groups=_groups(channel.groups),
            delivery=_delivery(channel),
            retention=_length(channel.retention, "retention"),
            order_by=_order(channel),
            retry=_retry(channel.retry),
            timeout=_length(channel.timeout, "timeout"),
            queue=_queue(channel, name),
            priority=_priority(channel.priority),
            backend=channel.backend,
        )
    except InvalidOption as error:
        raise InvalidOption(f"Channel {name}: {error}") from None


def carried(channel: type[BaseChannel]) -> tuple[str, ...]:
    """Return the names of what a notification carries."""
    return tuple(field.name for field in fields(channel))


def _refuse_shape(channel: type[BaseChannel], name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise InvalidOption(
            f"The path {shortened(name)} of a channel has {len(name)} characters; there is room "
            f"for {LONGEST_NAME}: shorten the name of its class or module."
        )
    if is_abstract(channel):
        raise InvalidOption(f"Channel {name} is abstract: only its subclasses have notifications.")
    if issubclass(channel, TriggerChannel) and channel.model is None:
        raise InvalidOption(
            f"Channel {name} has no model: say which, by model = …, or abstract = True if only "
            "its subclasses have one."
        )
    said = [word for word in vars(channel).get("__annotations__", {}) if word in WORDS]
    if said:
        raise InvalidOption(
            f"Channel {name} has a field {said[0]!r}, which is a word that channels say of "
            "themselves: leave out its annotation, or rename the field."
        )
    known = set(carried(channel))
    missing = [one for one in vars(channel).get("__annotations__", {}) if one not in known
               and "ClassVar" not in str(channel.__annotations__[one])]  # fmt: skip
    if missing:
        raise InvalidOption(
            f"Channel {name} has a field {missing[0]!r} that no notification would carry: put "
            "@dataclass above the class."
        )


def _groups(groups: Any) -> tuple[str, ...]:
    named = (groups,) if isinstance(groups, str) else tuple(groups or ())
    for group in named:
        is_name = isinstance(group, str) and 1 <= len(group) <= LONGEST_GROUP
        if not is_name or not group.isprintable() or group != group.strip():
            raise InvalidOption(
                f"groups must be names of 1 to {LONGEST_GROUP} characters, got {shortened(group)}."
            )
    if not named or len(set(named)) < len(named):
        raise InvalidOption(f"groups must be different names, one at least, got {groups!r}.")
    return named


def _delivery(channel: type[BaseChannel]) -> str:
    delivery = channel.delivery
    if delivery not in DELIVERIES:
        near = difflib.get_close_matches(str(delivery), DELIVERIES, n=1, cutoff=0.4)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidOption(
            f"delivery must be one of {', '.join(DELIVERIES)}, got {shortened(delivery)}.{meant}"
        )
    return delivery


def _order(channel: type[BaseChannel]) -> tuple[str, ...]:
    said = channel.order_by
    names = (said,) if isinstance(said, str) else tuple(said or ())
    if names and not issubclass(channel, TriggerChannel):
        known = carried(channel)
        for name in names:
            if name not in known:
                raise InvalidOption(
                    f"order_by names {shortened(name)}, which it does not carry. Its fields: "
                    f"{', '.join(known)}."
                )
    if names and not channel.lock_notifications:
        raise InvalidOption(
            "order_by keeps the order of stored notifications: say lock_notifications = True."
        )
    return names


def _retry(retry: Any) -> Retry | None:
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidOption(f"retry must be a Retry(…), got {shortened(retry)}.")
    return retry


def _queue(channel: type[BaseChannel], name: str) -> str:
    queue = channel.queue_name
    if queue is None:
        # Of its own, so that a worker can be there for some channels and no others.
        return name if len(name) <= LONGEST_QUEUE else f"…{name[-LONGEST_QUEUE + 1 :]}"
    if not isinstance(queue, str) or not 1 <= len(queue) <= LONGEST_QUEUE:
        raise InvalidOption(
            f"queue_name has 1 to {LONGEST_QUEUE} characters, got {shortened(queue)}."
        )
    return queue


def _priority(priority: Any) -> int:
    if not isinstance(priority, int) or isinstance(priority, bool) or not -100 <= priority <= 100:
        raise InvalidOption(
            f"priority must be a whole number from -100 to 100, got {shortened(priority)}."
        )
    return priority


def _length(value: Any, name: str) -> timedelta | None:
    return None if value is None else clock.duration(value, name)


def _nearest(name: str) -> str:
    known = [name_of(channel) for channel in channels()]
    # Most slips are in the last word, and most paths begin alike.
    by_last = {path.rpartition(".")[2]: path for path in known}
    last = name.rpartition(".")[2]
    near = [by_last[word] for word in difflib.get_close_matches(last, by_last, n=1)]
    near = near or difflib.get_close_matches(name, known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"There are: {', '.join(known)}." if known else "None is declared."
