"""From the commit to the start of the body, where the workers have nothing to do; and its price."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from django.db import transaction

from bench import counters
from bench.crew import crew
from bench.figures import Figure, Gate, percentile
from bench.project.work.tasks import note
from bench.session import Session

PATIENCE = 15.0
# Longer than a worker goes on looking after it has found something.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 0.4


def pickup(session: Session) -> Iterator[Figure]:
    """Yield how long a job waits for an idle worker."""
    samples = session.scale.samples
    with crew(), tempfile.TemporaryDirectory(prefix="once-bench-") as directory:
        page = Path(directory) / "starts"
        seconds = [waited(n, page) for n in range(samples + 3)][3:]
    milliseconds = sorted(1_000 * each for each in seconds)
    gated = session.is_postgresql
    for name, part, most in (("p50", 0.5, 2.0), ("p95", 0.95, None), ("p99", 0.99, 6.0)):
        gates = (Gate("value", most=most),) if gated and most else ()
        yield Figure("pickup", name, percentile(milliseconds, part), "ms", gates=gates,
                     note=f"{samples} samples")  # fmt: skip


def wakeups(session: Session) -> Iterator[Figure]:
    """Yield what one job costs the database where four workers wait for it."""
    samples = max(10, session.scale.samples // 3)
    with crew(processes=4), tempfile.TemporaryDirectory(prefix="once-bench-") as directory:
        page = Path(directory) / "starts"
        waited(0, page)
        begun = counters.of_others()
        time.sleep(3.0)
        rested = counters.of_others()
        for n in range(1, samples + 1):
            waited(n, page)
        worked = counters.of_others()
    idle, busy = rested.since(begun), worked.since(rested)
    for name, spent, alone, own, most in (
        # The bench itself commits each job and sends its NOTIFY.
        ("transactions", busy.transactions, idle.transactions, 2, None),
        ("statements", busy.statements, idle.statements, 0, 4.0),
    ):
        per_job = (spent - alone / idle.at * busy.at) / samples - own
        yield Figure(
            "wakeups", f"{name} per job, 4 idle workers", per_job, "",
            gates=(Gate("value", most=most),) if most else (),
            note="the enqueue and what idle workers send anyway are not counted",
        )  # fmt: skip


def waited(number: int, page: Path) -> float:
    """Enqueue one job after a pause; return the seconds from its commit to its body's start."""
    time.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
    committed: list[int] = []
    with transaction.atomic():
        # Registered before the job's own wakeup, so it is called right after the commit.
        transaction.on_commit(lambda: committed.append(time.monotonic_ns()))
        note.enqueue(number, str(page))
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        began = started(page, number)
        if began is not None:
            return max(0, began - committed[0]) / 1e9
        time.sleep(0.005)
    raise TimeoutError(f"No worker took job {number} within {PATIENCE:.0f} s.")


def started(page: Path, number: int) -> int | None:
    """Return when the body of this job began, if it has."""
    lines = page.read_bytes().splitlines() if page.exists() else []
    for line in reversed(lines):
        n, at = line.split()
        if int(n) == number:
            return int(at)
    return None
