"""Locks: take and give back beside two bare statements, and how soon a waiter has what is freed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from bench.figures import Figure, Gate, paired, percentile
from bench.others import PATIENCE, Other, wait_and_tell
from bench.session import Session
from django_once.locks import lock

NAME: Final = "bench:export"
TAKE: Final = b"""
    INSERT INTO once_lock (name, holder, nonce, fence, acquired_at, renewed_at, expires_at)
    VALUES (%s, 'raw', %s, 1, statement_timestamp(), statement_timestamp(),
        statement_timestamp() + interval '60 seconds')
    ON CONFLICT (name) DO UPDATE SET fence = once_lock.fence + 1, holder = excluded.holder,
        nonce = excluded.nonce, acquired_at = excluded.acquired_at,
        renewed_at = excluded.renewed_at, expires_at = excluded.expires_at, released_at = NULL
    WHERE once_lock.released_at IS NOT NULL OR once_lock.expires_at < statement_timestamp()
    RETURNING fence"""
RELEASE: Final = b"""
    UPDATE once_lock SET released_at = statement_timestamp(), released_by = holder
    WHERE name = %s AND nonce = %s AND released_at IS NULL"""
# Long enough that the waiter listens, and sleeps.
SHORTEST_HOLD, LONGEST_HOLD = 0.05, 0.15


def locks(session: Session) -> Iterator[Figure]:
    """Yield how many locks one thread takes and gives back, and how fast a waiter gets one."""
    seconds = session.scale.seconds
    found = paired(
        max(3, session.scale.rounds), lambda: bare(session, seconds), lambda: taken(seconds)
    )
    yield Figure(
        "locks", "take and give back", found.value, "per s", raw=found.raw,
        against="two bare statements", ratio=found.ratio, gates=(Gate("ratio", least=0.7),),
    )  # fmt: skip
    milliseconds = sorted(1_000 * one for one in handed_over(session.scale.samples))
    for name, part, most in (("p50", 0.5, 5.0), ("p95", 0.95, None)):
        yield Figure(
            "locks", f"release to the waiter's return, {name}", percentile(milliseconds, part),
            "ms", gates=(Gate("value", most=most),) if most else (),
            note=f"{session.scale.samples} samples",
        )  # fmt: skip


def bare(session: Session, seconds: float) -> float:
    """Take and give back through one connection of the driver; return how often per second."""
    line: Any = session.raw.line  # type: ignore[attr-defined]
    done, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        nonce = uuid4()
        assert line.execute(TAKE, [NAME + ":raw", nonce]).fetchone() is not None
        line.execute(RELEASE, [NAME + ":raw", nonce])
        done += 1
    return done / (time.monotonic() - began)


def taken(seconds: float) -> float:
    """Take and give back as a user does; return how often per second."""
    done, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        with lock(NAME):
            done += 1
    return done / (time.monotonic() - began)


def handed_over(samples: int) -> list[float]:
    """Return the seconds from a release to the return of another process that waited for it."""
    waiter = Other(wait_and_tell, NAME)
    found = []
    try:
        waiter.answer()
        for n in range(samples + 3):
            with lock(NAME, wait=PATIENCE):
                waiter.tell(n)
                time.sleep(random.uniform(SHORTEST_HOLD, LONGEST_HOLD))
                released = time.monotonic()
            found.append(waiter.answer() - released)
    finally:
        waiter.end()
    return found[3:]
