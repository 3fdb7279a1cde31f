"""What was asked for: the options of one run, and what follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CRASHY, LATE = "crashy", "late"
# So many jobs a second each database is given in the two mixtures, on a machine with two cores.
PER_SECOND = {
    "postgresql": {CRASHY: 85.0, LATE: 6.0},
    "mariadb": {CRASHY: 40.0, LATE: 6.0},
    "sqlite": {CRASHY: 25.0, LATE: 8.0},
}
# A pause that is longer than a lease takes its time.
SHARE_OF_LATE = 0.6
GROUPS = 2
PROCESSES = 2
CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class Act:
    """A part of a run: its mixture, how long it lasts, and which orders are brought in it."""

    mixture: str
    seconds: float
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of one run; a run prints them first, and they and the code make its faults."""

    database: str
    seconds: float
    seed: int
    mixture: str
    jobs: int
    lease: float
    # How many times more often than once in the long form a fault happens in a minute.
    density: float
    # How much of the exposures is asked for: a slow machine has fewer in a short time.
    asked: float

    @property
    def acts(self) -> list[Act]:
        """Return the parts of the run: many short jobs first, then few that are long."""
        if self.mixture != "both":
            return [Act(self.mixture, self.seconds, 1, self.jobs)]
        seconds = self.seconds * SHARE_OF_LATE
        late = min(self.jobs // 2, max(1, int(PER_SECOND[self.database][LATE] * seconds)))
        first = self.jobs - late
        return [
            Act(CRASHY, self.seconds - seconds, 1, first),
            Act(LATE, seconds, first + 1, self.jobs),
        ]

    @property
    def sweep(self) -> float:
        """The longest time between two sweeps."""
        return min(10.0, self.lease / 4) * 1.2

    def as_json(self) -> dict[str, Any]:
        """Return the options as they stand in the report."""
        return asdict(self)


def jobs_for(database: str, mixture: str, seconds: float) -> int:
    """Return how many jobs this database is given in this time."""
    rates = PER_SECOND[database]
    if mixture == "both":
        late = seconds * SHARE_OF_LATE
        return int(rates[CRASHY] * (seconds - late) + rates[LATE] * late)
    return int(rates[mixture] * seconds)
