"""`Unique`: of one name at most one job waits, or waits and runs, or is enqueued in a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django_once import clock
from django_once.definitions import template
from django_once.errors import InvalidOption

STARTED: Final = "started"
FINISHED: Final = "finished"
UNTIL: Final = (STARTED, FINISHED)
EXISTING: Final = "existing"
REPLACE: Final = "replace"
RAISE: Final = "raise"
ON_CONFLICT: Final = (EXISTING, REPLACE, RAISE)


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one job of this name, until it is started or finished.

    `key` may have places for arguments: "charge:{order_id}". Without it, the same arguments make
    the same job. `window` keeps the name taken for at least so long from the enqueue on.
    """

    key: str | None = None
    until: str = FINISHED
    window: timedelta | None = None
    on_conflict: str = EXISTING

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.key is not None:
            template.checked(self.key, "The key of a Unique")
        if self.until not in UNTIL:
            raise InvalidOption(f"until must be one of {', '.join(UNTIL)}, got {self.until!r}.")
        if self.on_conflict not in ON_CONFLICT:
            raise InvalidOption(
                f"on_conflict must be one of {', '.join(ON_CONFLICT)}, got {self.on_conflict!r}."
            )
        if self.window is not None:
            window = clock.duration(self.window, "The window of a Unique")
            if not window:
                raise InvalidOption("The window of a Unique must be longer than nothing.")
            object.__setattr__(self, "window", window)

    def hash_of(self, backend: str, task: str, name: str) -> str:
        """Return what no second job may have; its first letter says until when, for the claim."""
        text = "\0".join((backend, task, name))
        return self.until[0] + hashlib.sha256(text.encode()).hexdigest()[:63]


def named(said: Any, task: str) -> Unique | None:
    """Return the uniqueness that a task's options come to: that of debounce and cooldown, too."""
    unique = said.get("unique")
    if "debounce" in said:
        key = unique.key if unique is not None else template.literal(task)
        return Unique(key, until=STARTED, on_conflict=REPLACE)
    if "cooldown" in said:
        key = unique.key if unique is not None else template.literal(task)
        return Unique(key, until=STARTED, window=said["cooldown"])
    return unique if isinstance(unique, Unique) else None
