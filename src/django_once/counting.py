"""What this process has counted and not yet written down: ends of attempts, leases that were lost.

To count is one step in memory. Now and then somebody takes what was counted and adds it to the
figures in the database, where it outlives the process. A process that is killed takes with it what
it counted since: figures are for graphs, and the books of the jobs are not kept by them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

ATTEMPTS = "attempts"
SUPERSEDED = "superseded"
LEASES_LOST = "leases_lost"
# Rows can name tasks that nobody declared: those beyond so many labels are counted together.
MOST = 5_000


class Label(NamedTuple):
    """Of what something was counted."""

    name: str
    task: str = ""
    queue: str = ""
    outcome: str = ""


_counted: Counter[Label] = Counter()
_changing = threading.Lock()


def count(labels: Iterable[Label] | Mapping[Label, int]) -> None:
    """Count each of these once, or as often as is said."""
    with _changing:
        _counted.update(labels)
        if len(_counted) > MOST:
            _put_together()


def take() -> dict[Label, int]:
    """Return what was counted since the last call."""
    with _changing:
        taken = dict(_counted)
        _counted.clear()
    return taken


def put_back(taken: dict[Label, int]) -> None:
    """Count again what could not be written down."""
    with _changing:
        _counted.update(taken)


def forget() -> None:
    """Begin anew, as a forked process must: what its parent counted is its parent's."""
    with _changing:
        _counted.clear()


def _put_together() -> None:
    sums: Counter[Label] = Counter()
    for label, number in _counted.items():
        sums[label._replace(task="", queue="")] += number
    _counted.clear()
    _counted.update(sums)
