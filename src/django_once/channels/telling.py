"""Telling a channel: `notify`, and what becomes of notifications that are stored already.

A stored notification is part of the caller's transaction, as any job is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async

from django_once import compat, identity, payload
from django_once.channels.broadcasting import broadcast
from django_once.channels.handling import CARRIED, EVENT
from django_once.definitions import carrying, listeners
from django_once.definitions.channel import (
    BaseChannel,
    TriggerChannel,
    Words,
    channels,
    family,
    located,
    words_of,
)
from django_once.definitions.options import AT_MOST_ONCE
from django_once.errors import InvalidNotification, InvalidOption
from django_once.sql.values import NewJob

# Of JSON: a channel carries rows, which triggers do not measure either.
LONGEST = 16 * 2**20


def notify(channel: type[BaseChannel] | str, **carried: Any) -> str:
    """Tell a channel; return what it was told, as JSON.

    A stored notification is there when the caller's transaction commits; a broadcast is heard then
    by those who listen.
    """
    meant = located(channel)
    words = words_of(meant)
    if issubclass(meant, TriggerChannel):
        raise InvalidNotification(
            f"Channel {words.name} is told by triggers of {meant.model!r}: change a row of it."
        )
    text = carrying.written(meant, carried)
    if words.is_stored:
        _store(words, text)
    else:
        broadcast(meant, text)
    return text


async def anotify(channel: type[BaseChannel] | str, **carried: Any) -> str:
    """Do what `notify` does, from async code."""
    return await sync_to_async(notify, thread_sensitive=True)(channel, **carried)


def process_stored_notifications(
    channels: Iterable[type[BaseChannel] | str] | None = None,
) -> None:
    """Let whoever listens look at once for what is stored, of these channels or of all.

    Nothing needs it: what was stored while nobody listened is found by whoever comes.
    """
    for alias in {words_of(one).backend for one in _meant(channels)}:
        backend: Any = compat.task_backends[alias]
        backend.announce(is_ready=True)


def replay(
    channel: type[BaseChannel] | str, *, group: str | None = None, within: Any = None
) -> int:
    """Let notifications that are kept be handled once more; count them.

    Those that were handled well, and those that failed; of one group, or of all; that ended within
    the given time, or at any.
    """
    from django_once.models.notification import replay_ended

    count = 0
    for one in family(located(channel)):
        words = words_of(one)
        if group is not None and group not in words.groups:
            raise InvalidOption(
                f"Channel {words.name} has no group {group!r}: it has {', '.join(words.groups)}."
            )
        backend: Any = compat.task_backends[words.backend]
        paths = [words.path_of(name) for name in ([group] if group else words.groups)]
        count += replay_ended(backend.database, words.backend, words.name, paths, _length(within))
        backend.announce(is_ready=True)
    return count


def _length(within: Any) -> timedelta | None:
    from django_once import clock

    return None if within is None else clock.duration(within, "within")


def _meant(chosen: Iterable[type[BaseChannel] | str] | None) -> list[type[BaseChannel]]:
    if chosen is None:
        return [one for one in channels() if one.lock_notifications]
    found = [one for name in chosen for one in family(located(name))]
    return [one for one in found if one.lock_notifications]


def _store(words: Words, text: str) -> None:
    """Store a notification as a job of each group."""
    from django_once.models.notification import store

    backend: Any = compat.task_backends[words.backend]
    told = payload.write(
        {EVENT: listeners.TOLD, CARRIED: text}, "A notification", most_bytes=LONGEST
    )
    jobs = [_new_job(words, group, told, backend.settings.deaths) for group in words.groups]
    series = _series(words, text)
    is_ready = store(backend.database, jobs, series)
    backend.announce(is_ready=is_ready)


def _new_job(words: Words, group: str, told: str, deaths: int) -> NewJob:
    return NewJob(
        id=identity.job_id(),
        backend=words.backend,
        task=words.path_of(group),
        args="[]",
        kwargs=told,
        queue=words.queue,
        priority=words.priority,
        max_attempts=words.max_attempts,
        max_deaths=0 if words.delivery == AT_MOST_ONCE else deaths,
        timeout=words.timeout.total_seconds() if words.timeout else None,
        delivery=words.delivery,
        channel=words.name,
        kept_for=words.kept_for,
    )


def _series(words: Words, text: str) -> str | None:
    """Return what notifications of which only one is handled at a time have in common."""
    if not words.order_by:
        return None
    carried = json.loads(text)["kwargs"]
    return ":".join(_word(carried[name]) for name in words.order_by)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
