"""What is to happen in a play, and what did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Victim = Literal["worker", "web", "supervisor", "host"]

# After which part of the time who is killed.
ACTS: Final[tuple[tuple[float, Victim], ...]] = (
    (0.10, "worker"),
    (0.20, "web"),
    (0.32, "worker"),
    (0.44, "supervisor"),
    (0.58, "worker"),
    (0.68, "host"),
    (0.86, "web"),
    (0.94, "worker"),
)


@dataclass(frozen=True, slots=True)
class Doomed:
    """An order that was written, and whose process was killed before its COMMIT."""

    number: int
    job: str


@dataclass(slots=True)
class Story:
    """What happened: who was killed, which orders never came to be, how long it took."""

    kills: dict[Victim, int] = field(default_factory=dict)
    busy: int = 0
    doomed: list[Doomed] = field(default_factory=list)
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """How many times something was killed."""
        return sum(self.kills.values())

    def killed_one(self, victim: Victim, jobs: int = 0) -> None:
        """Write down a kill, and how many jobs were held by whom it hit."""
        self.kills[victim] = self.kills.get(victim, 0) + 1
        self.busy += bool(jobs)
