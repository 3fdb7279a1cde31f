"""The plan of faults: from a seed to moments, each with what shall happen and to whom."""

from __future__ import annotations

import random
from dataclasses import dataclass

from chaos.wish import CRASHY, LATE, Act, Wish

# How often each fault happens in a minute of the long form.
RATES = {
    CRASHY: {
        "kill worker": 6.0, "kill keeper": 1.5, "kill supervisor": 1.5, "kill group": 1.0,
        "kill feeder": 1.0, "stop worker": 0.5, "stop keeper": 0.5, "stop group": 1.5,
        "server immediate": 0.5, "server fast": 0.5, "cut": 6.0, "cut answer": 3.0,
        "delay": 1.0, "hole": 0.5, "reset": 0.5, "terminate": 2.0, "cancel": 2.0, "crowd": 0.5,
        "hold": 2.0,
    },
    LATE: {
        "kill worker": 2.0, "kill group": 0.3, "stop worker": 4.0, "stop keeper": 1.5,
        "stop group": 3.0, "stop supervisor": 0.5, "cut": 2.0, "cut answer": 2.0,
        "hole": 0.3, "delay": 0.5, "hold": 1.0,
    },
}  # fmt: skip
SERVERS_ONLY = ("server", "cut", "delay", "hole", "reset", "terminate", "cancel")
POSTGRESQL_ONLY = ("crowd",)
SQLITE_ONLY = ("hold",)
CUTS = ("claim", "settle", "settle", "start", "commit", "enqueue", "renew")
# Those that leave somebody in doubt about what was committed.
ANSWERS = ("claim", "commit", "settle", "start", "claim")
# At both ends of an act nothing happens for so long.
MARGIN = 2.0


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """What shall happen, when, for how long, and to which of those that could be meant."""

    at: float
    what: str
    whom: str
    seconds: float
    draw: float


def planned(wish: Wish) -> list[Fault]:
    """Return the faults of a run in their order; the same for the same wish."""
    dice = random.Random(f"faults:{wish.seed}")
    faults, began = [], 0.0
    for act in wish.acts:
        for name, rate in RATES[act.mixture].items():
            if is_possible(name, wish.database):
                faults += spread(
                    name, rate * wish.density * act.seconds / 60, act, began, wish, dice
                )
        began += act.seconds
    return sorted(faults)


def is_possible(name: str, database: str) -> bool:
    """Return whether a fault can happen to this database."""
    word = name.split()[0]
    if word in SQLITE_ONLY:
        return database == "sqlite"
    if word in POSTGRESQL_ONLY:
        return database == "postgresql"
    return word not in SERVERS_ONLY or database != "sqlite"


def spread(
    name: str, number: float, act: Act, began: float, wish: Wish, dice: random.Random
) -> list[Fault]:
    """Return so many faults of a kind, one in each part of the act, anywhere in it."""
    count = int(number) + (dice.random() < number % 1)
    what, _, whom = name.partition(" ")
    if what == "server":
        # However short a run is, its server goes and comes back in both ways.
        count = max(1, count)
    part = (act.seconds - 2 * MARGIN) / max(1, count)
    cuts = dice.sample(CUTS, len(CUTS)) if whom == "" else ANSWERS
    return [
        Fault(
            began + MARGIN + part * (n + dice.random()),
            what,
            drawn_cut(cuts[n % len(cuts)], whom, dice) if what == "cut" else whom,
            length(what, whom, wish, dice),
            dice.random(),
        )
        for n in range(count)
    ]


def drawn_cut(kind: str, moment: str, dice: random.Random) -> str:
    """Return which statement is cut and when; each kind has its turn, so that none is missed."""
    return f"{kind} {moment or dice.choice(('before', 'after'))}"


def length(what: str, whom: str, wish: Wish, dice: random.Random) -> float:
    """Return for how long a fault lasts, where it lasts."""
    if what == "stop":
        # A lease that was renewed in the last moment lapses, and somebody sweeps after that.
        shortest = 0.3 if whom in ("worker", "supervisor") else 1.4
        return dice.uniform(shortest, 2.5) * wish.lease
    if what == "hole":
        return dice.uniform(0.5, 1.6) * wish.lease
    if what == "hold":
        return dice.uniform(0.2, 6.0)
    return dice.uniform(0.5, 3.0)
