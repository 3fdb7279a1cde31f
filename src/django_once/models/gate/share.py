"""Sharing a lane: whose job comes next, so that nobody's flood delays the others.

Each key of a lane has a virtual time: how far it was served, in the unit of positions. A job of it
gets the later of its key's time and the lane's as its position, and moves its key on by a step,
which is shorter the greater its weight is. So the jobs of a flood stand a step apart from each
other, and whoever comes with one job stands before all of them but the first. (This is start-time
fair queueing; Goyal, Vin and Cheng, 1996.)

The lane's time is the position of the job that comes next there. No key is admitted further than a
window ahead of it: the rest waits at the key's gate, where nobody walks over it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from django_once.sql.gates import Candidate, Gate

# Microseconds of virtual time that a job of weight one takes, and how many of these are admitted.
STEP: Final = 1_000
WINDOW: Final = 500


def lane_of(queue: str, priority: int) -> str:
    """Return the gate that keeps the time of a lane: that of no key."""
    return f"fair:{queue}:{priority}:"


def needs_of(candidates: Iterable[Candidate]) -> set[str]:
    """Return what must be locked to place these: the time of their lanes, and their own."""
    fair = [one for one in candidates if one.fair_key is not None]
    lanes = {lane_of(one.queue, one.priority) for one in fair}
    return lanes | {share_of(one) for one in fair}


def share_of(candidate: Candidate) -> str:
    """Return the gate that keeps the time of a job's key."""
    return f"{lane_of(candidate.queue, candidate.priority)}{candidate.fair_key}"


class Shares:
    """The virtual times of lanes and their keys, while some of their jobs are placed."""

    def __init__(self, gates: dict[str, Gate], heads: dict[str, int]) -> None:
        self.moved: dict[str, Gate] = {}
        self._gates = gates
        # Where nobody is ready, the lane goes on where its last one was placed, and not before now.
        self._times = {
            name: heads.get(name, max(gates[name].served, gates[name].now))
            for name in gates
            if name.startswith("fair:") and name.endswith(":")
        }

    def position(self, candidate: Candidate, weight: float) -> int | None:
        """Return the position of this key's next job, or None when its window is full."""
        name, lane = share_of(candidate), lane_of(candidate.queue, candidate.priority)
        share, time = self._stand(name), self._times[lane]
        begins = max(time, share.served)
        if begins >= time + WINDOW * STEP:
            return None
        ends = begins + max(1, round(STEP / weight))
        self.moved[name] = replace(share, served=ends)
        of_lane = self._stand(lane)
        # Later ones need not look before the head of today.
        self.moved[lane] = replace(of_lane, served=max(of_lane.served, ends), free_at=time)
        return begins

    def _stand(self, name: str) -> Gate:
        return self.moved.get(name, self._gates[name])
