"""The page of channels: what each carries, to which groups, and what became of the last of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django_once import sql
from django_once.dashboard import filters
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.definitions.channel import channels, is_abstract, words_of
from django_once.definitions.listeners import groups_heard
from django_once.sql.windows import Window

STATES: Final = {"waiting": "waiting", "running": "running", "failed": "failed"}
MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """One channel as this process declares it, and what stands of it in the table."""

    words: Any
    groups: list[str]
    counts: tuple[tuple[str, int, bool, str], ...]


def show(visit: Visit) -> Shown:
    """Show the channels that this process declares, and count what waits, runs and failed."""
    known = [words_of(one) for one in channels() if not is_abstract(one)]
    here = [words for words in known if words.backend in visit.aliases]
    heard = {words_of(one).name: groups_heard(one) for one in channels() if not is_abstract(one)}
    told = [
        Told(words, heard[words.name], _counts(visit, words) if words.is_stored else ())
        for words in sorted(here, key=lambda words: words.name)
    ]
    return Shown("channels", "Channels", "once/channels.html", {"channels": told})


def _counts(visit: Visit, words: Any) -> tuple[tuple[str, int, bool, str], ...]:
    found = []
    for name, state in STATES.items():
        text = filters.written(state=state, channel=words.name)
        clauses = filters.parse(text, visit.now).clauses
        window = Window(sql.on(visit.database), visit.aliases, clauses)
        found.append((name, *window.count(MOST), text))
    return tuple(found)
