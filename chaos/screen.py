"""What a person sees of a run, and the report that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chaos.verifier.audit import INVALID, MOST_SHOWN, PASSED, Audit
from chaos.wish import Wish
from tools.checkout import state_directory


def say(text: str = "") -> None:
    """Print a line at once."""
    print(text, flush=True)


def headline(wish: Wish) -> None:
    """Print the seed and every option, so that a run can be had again."""
    said = " ".join(f"{name}={value}" for name, value in wish.as_json().items())
    say(f"chaos: {said}")


def show(audit: Audit) -> None:
    """Print the figures, what was broken, and the verdict."""
    figures = audit.figures
    say()
    for name in ("jobs", "claims", "starts", "undone", "kills", "restarts", "stops",
                 "stops_longer_than_the_lease", "cuts", "superseded", "lost", "doubled", "wrong",
                 "drain_seconds"):  # fmt: skip
        say(f"  {name.replace('_', ' '):<30} {figures[name]:>10,}")
    for name, count in figures["exposures"].items():
        asked = audit.missing.get(name)
        say(
            f"  {name:<30} {count:>10,}"
            + (f"   at least {asked[1]} are asked for" if asked else "")
        )
    for kind, one in figures["recovery"].items():
        say(
            f"  {'recovery, ' + kind + ' killed':<30} {one['longest']:>8} s   {one['kills']} kills "
            f"with jobs; undisturbed {one['undisturbed']}, at most {one['longest_undisturbed']} s"
        )
    say(f"  {'faults':<30} " + ", ".join(f"{name} {n}" for name, n in figures["faults"].items()))
    say()
    for complaint in audit.complaints:
        say(f"  ✗ {complaint}")
    for one in audit.violations[:MOST_SHOWN]:
        say(f"  ✗ {one.promise} {one.said}")
    more = len(audit.violations) - MOST_SHOWN
    if more > 0:
        say(f"  ✗ … and {more:,} more.")
    say(f"  {verdict(audit)}")


def verdict(audit: Audit) -> str:
    """Return the last line of a run."""
    if audit.verdict == PASSED:
        bound = audit.figures["bound"]
        return f"Nothing lost, nothing doubled: at most {bound:.1e} of the jobs (95 %).  PASSED"
    if audit.verdict == INVALID:
        return "Too few guards were met, so this run proves nothing.  INVALID"
    return "The books do not balance.  FAILED"


def keep(audits: list[Audit]) -> Path:
    """Write the report, and return where it is."""
    place = state_directory() / "reports" / "chaos.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    report: list[dict[str, Any]] = [audit.as_json() for audit in audits]
    place.write_text(json.dumps(report, indent=2) + "\n")
    return place
