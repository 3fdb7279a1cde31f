"""How far ahead of need a worker claims, by the durations it has seen."""

from __future__ import annotations

from typing import Final

# What was claimed must start within this time, by the durations seen so far.
AHEAD: Final = 0.2
MOST_AHEAD: Final = 1_000
MOST_AT_ONCE: Final = 500


def less(share: int | None, done: int) -> int | None:
    """Return what is left of a share, where there is one."""
    return None if share is None else max(0, share - done)


def wanted_ahead(concurrency: int, seconds_per_job: float) -> int:
    """Return how many claims would start within the bound, were all jobs as long as the last."""
    in_time = int(AHEAD / max(seconds_per_job, 1e-6) * concurrency)
    return max(concurrency, min(MOST_AHEAD, in_time))


def room_for(wanted: int, concurrency: int, running: int, waiting: int) -> int:
    """Return how many to claim: free slots when bodies are slow, else enough not to run dry."""
    if wanted <= concurrency:
        return max(0, concurrency - running - waiting)
    if waiting > wanted // 2:
        return 0
    return min(MOST_AT_ONCE, wanted - waiting)
