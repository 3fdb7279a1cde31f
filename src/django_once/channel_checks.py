"""What channels say of themselves that cannot be meant, and triggers that are not as they say.

Two doors, as in `checks`: what is read from the declarations alone, and what a database is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.db import DatabaseError, InterfaceError, connections

from django_once.channels import broadcasting, filtering, installing
from django_once.checks import ours
from django_once.definitions.channel import BaseChannel, TriggerChannel, channels, words_of
from django_once.definitions.listeners import groups_heard
from django_once.errors import InvalidOption
from django_once.sql.triggers.installed import Drift


@checks.register("once")
def check_channels(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Return what the channels of this process cannot mean."""
    found = [finding for channel in channels() for finding in _of_channel(channel)]
    return [*found, *_filters()]


@checks.register(checks.Tags.database)
def check_triggers(
    app_configs: Any = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Return how the triggers of the named databases differ from what the channels say."""
    if _is_migrate():
        # It mends what would be found, so nothing of it must keep it from that.
        return []
    named = {backend.settings.database for backend in ours()} & set(databases or ())
    return [
        finding
        for database in sorted(named)
        if database in connections
        for finding in _of_triggers(database)
    ]


def _of_channel(channel: type[BaseChannel]) -> Iterator[CheckMessage]:
    try:
        words = words_of(channel)
        if issubclass(channel, TriggerChannel):
            installing.refuse_places(channel)
    except InvalidOption as error:
        yield Error(str(error), hint="Until then nothing of this channel is heard.", id="once.E011")
        return
    heard = groups_heard(channel)
    if heard and not words.is_stored and (refusal := broadcasting.unheard(words)):
        yield Error(refusal, hint="Until then its listeners hear nothing.", id="once.E013")
    unheard = [group for group in words.groups if group not in heard]
    if words.is_stored and heard and unheard:
        yield Caution(
            f"Nobody listens to channel {words.name} in {', '.join(unheard)}, and what is told "
            "there waits for somebody.",
            hint="Take the group away from the channel's groups, or import its listeners when apps "
            "load: an app's module named listeners is.",
            id="once.W019",
        )


def _filters() -> Iterator[CheckMessage]:
    for backend in ours():
        try:
            chosen = filtering.provider(backend.alias)
        except InvalidOption as error:
            yield Error(str(error), hint="Name a class with get_filter().", id="once.E003")
            continue
        if chosen is not None and not callable(getattr(chosen, "get_filter", None)):
            yield Error(
                f"LISTENER_FILTER of TASKS[{backend.alias!r}] has no method get_filter().",
                hint="Give it one that returns a Q.",
                id="once.E003",
            )


def _of_triggers(database: str) -> Iterator[CheckMessage]:
    try:
        drift = installing.drift(database)
    except InvalidOption:
        # A finding of its own.
        return
    except (DatabaseError, InterfaceError):
        # That the database does not answer is said elsewhere.
        return
    if drift:
        yield Error(
            f"The triggers of database {database!r} are not as the channels say: "
            f"{'; '.join(_said(drift))}.",
            hint=f"Run: python manage.py migrate --database {database}",
            id="once.E012",
        )


def _said(drift: Drift) -> Iterator[str]:
    for word, triggers in (
        ("missing", drift.missing), ("changed", drift.changed), ("disabled", drift.disabled),
    ):  # fmt: skip
        if triggers:
            named = sorted({f"{one.event} of {one.table}" for one in triggers})
            yield f"{word}: {', '.join(named)}"
    if drift.left_over:
        yield f"left over: {', '.join(one.name for one in drift.left_over)}"


def _is_migrate() -> bool:
    return sys.argv[1:2] == ["migrate"]
