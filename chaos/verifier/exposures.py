"""Exposures: how often each guard had something to guard against.

A guard that was never met is not tested. So a run that meets too few is invalid, not green.
"""

from __future__ import annotations

from collections import Counter

from chaos.verifier.facts import RUNNING, Facts

# How many of each a minute of faults must bring, in the density of the long form.
ASKED = {
    "postgresql": {
        "outcomes refused": 1.0, "claims unknown": 0.5, "settles unknown": 0.5,
        "commits unknown": 0.2, "rows reconciled": 0.5, "rows swept": 1.0,
    },
    "mariadb": {
        "outcomes refused": 1.0, "claims unknown": 0.3, "settles unknown": 0.3,
        "rows reconciled": 0.2, "rows swept": 1.0,
    },
    "sqlite": {"outcomes refused": 0.3, "rows swept": 0.5},
}  # fmt: skip


def exposures(facts: Facts) -> dict[str, int]:
    """Return how often each guard was met."""
    cuts = Counter(cut["what"] for cut in facts.cuts)
    taken = [one for one in facts.changes if one.was == RUNNING and one.claim is None]
    own = [one for one in taken if facts.workers.get(one.worker_was or "") == one.writer]
    orphans = [one for one in taken if one.is_orphan]
    return {
        "outcomes refused": facts.logged["refused"],
        "claims unknown": cuts["claim"],
        "settles unknown": cuts["settle"] + facts.logged["settles without an answer"],
        "commits unknown": cuts["commit"] + facts.logged["commits without an answer"],
        "starts unknown": cuts["start"],
        "rows reconciled": len(own),
        "rows swept": len(orphans),
        "rows of the dead": len(taken) - len(own) - len(orphans),
        "workers lost": facts.logged["workers lost"],
    }


def asked_for(database: str, seconds: float, share: float) -> dict[str, int]:
    """Return how many of each a run of this length must have met."""
    minutes = seconds / 60
    return {name: max(1, int(rate * minutes * share)) for name, rate in ASKED[database].items()}
