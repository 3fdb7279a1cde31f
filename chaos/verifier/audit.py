"""The audit of one run: violations, exposures, and the figures that are printed and kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from chaos.verifier.books import DOUBLED, LOST, Violation, violations
from chaos.verifier.exposures import asked_for, exposures
from chaos.verifier.facts import RUNNING, Facts
from chaos.verifier.recovery import Recovery, recoveries
from chaos.wish import Wish

PASSED, FAILED, INVALID = "passed", "failed", "invalid"
# Beside the bounds of the table of guarantees: a loaded machine is slow, and no clock is exact.
SLACK = 5.0
MOST_SHOWN = 20


@dataclass(frozen=True)
class Audit:
    """What the books say of one run."""

    wish: Wish
    verdict: str
    violations: list[Violation]
    complaints: list[str]
    missing: dict[str, tuple[int, int]]
    figures: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the audit as it stands in the report."""
        return {
            "options": self.wish.as_json(),
            "verdict": self.verdict,
            "violations": [asdict(one) for one in self.violations[:1000]],
            "complaints": self.complaints,
            "missing_exposures": self.missing,
            **self.figures,
        }


def audited(wish: Wish, drain: float, facts: Facts, complaints: list[str]) -> Audit:
    """Audit the facts of a run."""
    broken = violations(facts)
    met = exposures(facts)
    asked = asked_for(wish.database, wish.seconds, wish.asked)
    missing = {name: (met[name], number) for name, number in asked.items() if met[name] < number}
    found = recoveries(facts, wish.lease, wish.sweep)
    late = too_late(found, wish)
    verdict = FAILED if broken or complaints or late else INVALID if missing else PASSED
    figures = figures_of(facts, broken, drain) | {
        "exposures": met,
        "recovery": longest(found),
        # With no violation in so many jobs, this is how many there may be at most, 19 times in 20.
        "bound": 3 / max(1, len(facts.jobs)),
    }
    return Audit(wish, verdict, broken, [*complaints, *late], missing, figures)


def figures_of(facts: Facts, broken: list[Violation], drain: float) -> dict[str, Any]:
    """Return the figures of a run."""
    sorts = Counter(one.sort for one in broken)
    done = facts.done.counts
    return {
        "jobs": len(facts.jobs),
        "by_status": dict(
            Counter(f"{job.status} {job.reason}".strip() for job in facts.jobs.values())
        ),
        "claims": sum(one.became == RUNNING for one in facts.changes),
        "starts": len(facts.starts),
        "undone": len(facts.undone),
        "kills": sum(count for name, count in done.items() if name.startswith("kill")),
        "restarts": sum(count for name, count in done.items() if name.startswith("server")),
        "stops": sum(count for name, count in done.items() if name.startswith("stop ")),
        "stops_longer_than_the_lease": done["stops longer than the lease"],
        "cuts": len(facts.cuts),
        "faults": dict(sorted(done.items())),
        "superseded": facts.logged["refused"],
        "lost": sorts[LOST],
        "doubled": sorts[DOUBLED],
        "wrong": sum(sorts.values()) - sorts[LOST] - sorts[DOUBLED],
        "drain_seconds": round(drain, 1),
        "locked_writes_refused": sum(not write.was_accepted for write in facts.writes),
        "logged": facts.logged,
    }


def longest(found: list[Recovery]) -> dict[str, dict[str, Any]]:
    """Return for each kind of kill how many left jobs behind, and how long those waited."""
    by_kind = defaultdict(list)
    for one in found:
        by_kind[one.what].append(one)
    return {
        kind: {
            "kills": len(ones),
            "jobs": sum(one.jobs for one in ones),
            "longest": round(max(one.seconds for one in ones), 2),
            "undisturbed": sum(one.is_undisturbed for one in ones),
            "longest_undisturbed": round(
                max((one.seconds for one in ones if one.is_undisturbed), default=0.0), 2
            ),
        }
        for kind, ones in sorted(by_kind.items())
    }


def too_late(found: list[Recovery], wish: Wish) -> list[str]:
    """Return a sentence for each undisturbed kill whose jobs waited longer than is promised."""
    bounds = {"worker": 2.0, "supervisor": 2.0, "group": wish.lease + wish.sweep}
    return [
        f"The jobs of a killed {one.what} waited {one.seconds:.1f} s, and nothing else was wrong."
        for one in found
        if one.is_undisturbed and one.seconds > bounds.get(one.what, 0.0) + SLACK
    ]
