"""What is drawn for one order: which kind it is, how long its body runs, how often it trips."""

from __future__ import annotations

import random
from dataclasses import dataclass

CRASHY, LATE = "crashy", "late"
LONGEST = 0.2
# A body that holds SQLite's one write lock lets nobody else write.
LONGEST_WRITER = 0.03


class Tripped(Exception):
    """What a body raises that shall be tried again."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one order asks for."""

    number: int
    kind: str
    seconds: float
    trips: int
    dice: random.Random

    @property
    def queue(self) -> str:
        """Long bodies stand in a queue of their own, which is served after the other."""
        return "long" if self.seconds > LONGEST else "work"


def order(
    seed: int, number: int, mixture: str, lease: float, kinds: dict[str, int], has_one_writer: bool
) -> Order:
    """Return what this number asks for; the same for the same seed."""
    dice = random.Random(f"{seed}:{number}")
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    seconds = dice.uniform(0, LONGEST)
    if mixture == LATE and dice.random() < 0.6:
        seconds = dice.uniform(0.5, 2.0) * lease
    if has_one_writer and kind.startswith("exactly"):
        seconds = dice.uniform(0, LONGEST_WRITER)
    trips = dice.choices([0, 1, 2], [90, 8, 2])[0]
    return Order(number, kind, seconds, trips, dice)
