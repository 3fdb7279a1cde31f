"""One database's measurements: what they share, and how large they are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from bench.figures import Figure
from bench.machine import is_small
from bench.raw import Raw


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: of the quick form, of the usual one, or on a machine that is too small."""

    name: str
    rounds: int
    jobs: int
    seconds: float
    samples: int
    backlog: int
    held: float

    def of(self, part: float) -> int:
        """Return a part of the usual number of jobs, for what is slow."""
        return max(100, int(self.jobs * part))


QUICK: Final = Scale("quick", 1, 40_000, 1.5, 30, 100_000, 12.0)
USUAL: Final = Scale("usual", 3, 100_000, 3.0, 150, 1_000_000, 60.0)
SMALL: Final = Scale("small machine", 3, 20_000, 2.0, 60, 200_000, 30.0)


def scale_for(form: str, jobs: int = 0) -> Scale:
    """Return how much is done here, of so many jobs if a number was asked for."""
    scale = QUICK if form == "quick" else SMALL if is_small() else USUAL
    return replace(scale, jobs=jobs) if jobs else scale


@dataclass
class Session:
    """The database under measurement, its raw limit, and the figures so far."""

    kind: str
    scale: Scale
    raw: Raw
    show: Callable[[Figure], None]
    figures: list[Figure] = field(default_factory=list)

    @property
    def is_postgresql(self) -> bool:
        """Whether the server is PostgreSQL, which most gates are for."""
        return self.kind == "postgresql"

    def take(self, found: Iterator[Figure]) -> None:
        """Keep and show figures as they come."""
        for figure in found:
            self.figures.append(figure)
            self.show(figure)
