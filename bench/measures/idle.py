"""What a worker costs that has nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench import counters, table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.session import Session


def idle(session: Session) -> Iterator[Figure]:
    """Yield the processor time and the questions of one idle worker, all its processes together."""
    seconds = 10.0 if session.scale.rounds == 1 else 30.0
    table.empty()
    with crew() as workers:
        # What it does because it was started is over after a while.
        time.sleep(4.0)
        before = counters.of_others() if session.is_postgresql else None
        began, used = time.monotonic(), workers.cpu_seconds
        time.sleep(seconds)
        lasted = time.monotonic() - began
        share = 100 * (workers.cpu_seconds - used) / lasted
        after = counters.of_others() if session.is_postgresql else None
    yield Figure("idle", "processor, all processes of a worker", share, "% of a core",
                 gates=(Gate("value", most=0.5),))  # fmt: skip
    if before is None or after is None:
        return
    spent = after.since(before)
    # Of transactions there are some that the server makes by itself, as it tidies up.
    yield Figure("idle", "transactions", spent.transactions / spent.at, "per s")
    yield Figure("idle", "statements", spent.statements / spent.at, "per s",
                 gates=(Gate("value", most=1.0),))  # fmt: skip
