"""Recovery: how long after a kill the jobs of the dead were held by nobody."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from chaos.verifier.facts import RUNNING, Change, Facts


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of the jobs that one kill left behind."""

    what: str
    jobs: int
    seconds: float
    # Nothing else was wrong at that time: no server away, nobody stopped.
    is_undisturbed: bool


def recoveries(facts: Facts, lease: float, sweep: float) -> list[Recovery]:
    """Return how long the jobs of each kill waited until they were taken back."""
    held = holdings(facts)
    by_pid = defaultdict(list)
    for worker, pid in facts.workers.items():
        by_pid[pid].append(worker)
    found = []
    for kill in facts.done.kills:
        waits = [
            ended.at - kill.at
            for pid in kill.pids
            for worker in by_pid[pid]
            for begun, ended in held[worker]
            if begun.at <= kill.at < ended.at and ended.writer != pid
        ]
        if waits:
            margin = lease + sweep
            calm = not any(
                since - margin < kill.at < until + margin for since, until in facts.done.outages
            ) and is_alone(kill, facts.done.kills, margin)
            found.append(Recovery(kill.what, len(waits), max(waits), calm))
    return found


def is_alone(kill: Any, kills: list[Any], margin: float) -> bool:
    """Return whether nobody else was killed who might have helped."""
    return all(other is kill or abs(other.at - kill.at) > margin / 2 for other in kills)


def holdings(facts: Facts) -> dict[str, list[tuple[Change, Change]]]:
    """Return each worker's holdings: the claim and the end of it."""
    held = defaultdict(list)
    begun: dict[str, Change] = {}
    for change in facts.changes:
        if change.became == RUNNING:
            begun[change.job] = change
        elif change.was == RUNNING and change.job in begun:
            held[change.worker_was or ""].append((begun.pop(change.job), change))
    return held
