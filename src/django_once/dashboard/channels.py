"""The page of channels: what each carries, to which groups, and what became of the last of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django_once import sql
from django_once.dashboard import filters
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.definitions.channel import channels, is_abstract, words_of
from django_once.definitions.listeners import groups_heard
from django_once.sql import samples

STATES: Final = ("ready", "scheduled", "blocked", "running", "failed")
MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """One channel as this process declares it, and what stands of it in the table."""

    words: Any
    groups: list[str]
    counts: tuple[tuple[str, int, str], ...]


def show(visit: Visit) -> Shown:
    """Show the channels that this process declares, and what waits, runs and failed of them."""
    known = [one for one in channels() if not is_abstract(one)]
    here = [one for one in known if words_of(one).backend in visit.aliases]
    statements = sql.on(visit.database)
    counts = {state: samples.by_channel(statements, state, MOST) for state in STATES}
    told = [
        Told(words_of(one), groups_heard(one), tuple(_counts(words_of(one).name, counts)))
        for one in sorted(here, key=lambda one: words_of(one).name)
    ]
    context = {"channels": told, "most": MOST}
    return Shown("channels", "Channels", "once/channels.html", context)


def _counts(name: str, counts: dict[str, dict[str, int]]) -> Iterator[tuple[str, int, str]]:
    for state in STATES:
        yield state, counts[state].get(name, 0), filters.written(state=state, channel=name)
