"""`python -m chaos`: a project under load and faults, a calm, and an audit of its books."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from chaos import screen
from chaos.errors import Refusal
from chaos.play import played
from chaos.verifier.audit import FAILED, INVALID, Audit
from chaos.wish import PER_SECOND, Wish, jobs_for

GREEN, RED, MISUNDERSTOOD, WORTHLESS, INTERRUPTED = 0, 1, 2, 3, 130
# The quick form: how long the storm lasts on each database, and how dense it is.
QUICK = {"postgresql": 40.0, "sqlite": 24.0, "mariadb": 40.0}
QUICK_DENSITY, QUICK_LEASE, LEASE = 3.0, 3.0, 5.0
# Whether a guard is met in so short a time is also luck.
TURNS_OF_QUICK = 3


def main() -> int:
    """Play what was asked for and return the exit code, which is that of the worst run."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = read_arguments()
    audits = []
    try:
        for wish in wishes(options):
            audits.append(audited(wish, options))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return MISUNDERSTOOD
    except KeyboardInterrupt:
        print("Interrupted: every process of chaos was stopped.", file=sys.stderr)
        return INTERRUPTED
    screen.say(f"  report: {screen.keep(audits)}")
    verdicts = {audit.verdict for audit in audits}
    return RED if FAILED in verdicts else WORTHLESS if INVALID in verdicts else GREEN


def audited(wish: Wish, options: argparse.Namespace) -> Audit:
    """Play a run and show its audit; a quick one that met too few guards again, and longer."""
    for turn in range(1, 1 + (TURNS_OF_QUICK if options.quick else 1)):
        longer = replace(
            wish, seed=wish.seed + turn - 1, seconds=wish.seconds * turn, jobs=wish.jobs * turn
        )
        screen.headline(longer)
        audit = played(longer, screen.say, keep=options.keep)
        screen.show(audit)
        if audit.verdict != INVALID:
            break
    return audit


def wishes(options: argparse.Namespace) -> list[Wish]:
    """Return the runs that were asked for."""
    databases: Sequence[str] = [options.database or "postgresql"]
    if options.quick and not options.database:
        databases = ["postgresql", "sqlite"]
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    return [wish(options, database, seed) for database in databases]


def wish(options: argparse.Namespace, database: str, seed: int) -> Wish:
    """Return one run."""
    seconds = options.minutes * 60
    if options.quick:
        seconds = QUICK[database]
    return Wish(
        database=database,
        seconds=seconds,
        seed=seed,
        mixture=options.mixture,
        jobs=options.jobs or jobs_for(database, options.mixture, seconds),
        lease=QUICK_LEASE if options.quick else LEASE,
        density=QUICK_DENSITY if options.quick else 1.0,
        asked=1.0,
    )


def read_arguments() -> argparse.Namespace:
    """Return what was asked for; refuse what cannot be meant."""
    parser = argparse.ArgumentParser(prog="dev.py chaos", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=3.0, metavar="M", help="how long faults happen (3)")
    add(
        "--seed",
        type=int,
        metavar="N",
        help="draws work and faults; printed, so it can be had again",
    )
    add("--database", choices=list(PER_SECOND), help="postgresql, unless --quick plays two")
    add("--mixture", choices=("crashy", "late", "both"), default="both",
        help="deaths of all kinds, late writers, or one after the other")  # fmt: skip
    add("--jobs", type=int, metavar="N", help="how many are brought in that time")
    add("--quick", action="store_true", help="a short and dense form, for CI")
    add("--keep", action="store_true", help="leave the logs and the ledger for a look")
    options = parser.parse_args()
    if not 0.3 <= options.minutes <= 24 * 60:
        parser.error(f"--minutes must be from 0.3 to 1440, got {options.minutes:g}.")
    if options.jobs is not None and not 10 <= options.jobs <= 10_000_000:
        parser.error(f"--jobs must be from 10 to 10,000,000, got {options.jobs}.")
    return options


if __name__ == "__main__":
    sys.exit(main())
