"""What is measured where: the names that --only takes, in the order of the table.

The functions stand in bench/measures and are imported where Django is set up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EVERYWHERE: Final = ("postgresql", "sqlite", "mariadb", "mysql")
POSTGRESQL: Final = ("postgresql",)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a measure makes sense, and the shortest form that has it."""

    databases: tuple[str, ...] = EVERYWHERE
    form: str = "quick"


ENTRIES: Final[dict[str, Entry]] = {
    "enqueue": Entry(),
    "bulk": Entry(),
    "drain": Entry(),
    "drain2": Entry(),
    "deliveries": Entry(),
    "async": Entry(),
    "threads": Entry(),
    "pickup": Entry(),
    "wakeups": Entry(POSTGRESQL, "usual"),
    "locks": Entry(POSTGRESQL, "usual"),
    "schedules": Entry(POSTGRESQL, "usual"),
    "idle": Entry(EVERYWHERE, "usual"),
    "memory": Entry(EVERYWHERE, "usual"),
    "unanalyzed": Entry(POSTGRESQL, "usual"),
    "backlog": Entry(POSTGRESQL, "usual"),
    "lanes": Entry(EVERYWHERE, "usual"),
    "limits": Entry(EVERYWHERE, "usual"),
    "waiting": Entry(EVERYWHERE, "usual"),
    "late": Entry(POSTGRESQL, "usual"),
    "held": Entry(POSTGRESQL, "usual"),
    "growth": Entry(POSTGRESQL, "long"),
}
NAMES: Final = tuple(ENTRIES)
FORMS: Final = ("quick", "usual", "long")


def names_for(kind: str, form: str, only: Sequence[str]) -> list[str]:
    """Return what to measure on a database: what was named, else what the form has."""
    there = [name for name, entry in ENTRIES.items() if kind in entry.databases]
    if only:
        return [name for name in there if name in only]
    return [name for name in there if FORMS.index(ENTRIES[name].form) <= FORMS.index(form)]
