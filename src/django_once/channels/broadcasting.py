"""Broadcasting: whoever listens now hears it, and nobody keeps it.

On PostgreSQL by NOTIFY, in the caller's transaction. Elsewhere by Redis or Valkey, when the
caller's transaction has committed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import connections, transaction

from django_once import compat, events, payload
from django_once.channels.handling import CARRIED, EVENT
from django_once.definitions import listeners
from django_once.definitions.channel import BaseChannel, Words, words_of
from django_once.errors import InvalidOption
from django_once.wakeups import broadcasts

# Of JSON, as of what is stored.
LONGEST = 16 * 2**20


def broadcast(channel: type[BaseChannel], text: str) -> None:
    """Tell whoever listens to a channel, when the caller's transaction commits."""
    from django_once.models.broadcast import tell

    words = words_of(channel)
    refuse_unheard(words)
    told = payload.write({EVENT: listeners.TOLD, CARRIED: text}, "A broadcast", most_bytes=LONGEST)
    settings, line = settings_of(words.backend), broadcasts.line_of(words.name)
    if connections[settings.database].vendor == "postgresql":
        tell(settings.database, line, told)
        return
    passing = partial(pass_on, settings.redis, line, told)
    transaction.on_commit(passing, using=settings.database, robust=True)


def pass_on(url: str, line: str, told: str) -> None:
    """Tell whoever listens at Redis. What cannot be told is missed, and said."""
    try:
        broadcasts.publish(url, line, told)
    except Exception as error:  # noqa: BLE001 - the driver's own errors, without importing it
        events.ours.warning("broadcast.missed: %s", error)


def refuse_unheard(words: Words) -> None:
    """Refuse a channel that is broadcast where nothing carries it."""
    sentence = unheard(words)
    if sentence:
        raise InvalidOption(sentence)


def unheard(words: Words) -> str:
    """Return why nobody would hear a channel that is broadcast, or nothing."""
    settings = settings_of(words.backend)
    if settings is None or connections[settings.database].vendor == "postgresql":
        return ""
    if settings.redis and broadcasts.has_redis():
        return ""
    missing = "name OPTIONS['REDIS'] of its backend" if broadcasts.has_redis() else (
        "install django-once[redis] and name OPTIONS['REDIS'] of its backend"
    )  # fmt: skip
    return (
        f"Channel {words.name} is broadcast, and database {settings.database!r} "
        f"({connections[settings.database].display_name}) carries no broadcasts: {missing}, or say "
        "lock_notifications = True."
    )


def settings_of(alias: str) -> Any:
    """Return the settings of the backend of a channel, or None for one that is not ours."""
    backend: Any = compat.task_backends[alias] if alias in compat.task_backends.settings else None
    return getattr(backend, "settings", None)
