"""Ids and nonces that a client draws before it sends a statement.

Whoever asks "did my statement arrive?" after a lost answer needs a name for it that the
database did not make. So both are drawn here: the id of a job (UUIDv7, growing within a
process, hence kind to the primary key's index) and the nonce of a claim (UUIDv4).
"""

from __future__ import annotations

import os
import socket
from itertools import accumulate
from threading import Lock
from uuid import UUID, SafeUUID, uuid4

from django_once import clock

__all__ = ["job_id", "job_ids", "nonce", "position", "process_id"]

nonce = uuid4

_COUNTER_BITS = 74
_LOW_BITS = (1 << 62) - 1
_drawing = Lock()
_last_millisecond = 0
_last_counter = 0
_last_position = 0


def job_id() -> UUID:
    """Return a UUIDv7 that is larger than every one this process drew before."""
    return job_ids(1)[0]


def job_ids(count: int) -> list[UUID]:
    """Return so many UUIDv7, each larger than the one before it and all this process drew."""
    global _last_millisecond, _last_counter
    steps = os.urandom(count)
    with _drawing:
        millisecond = clock.wall_microseconds() // 1000
        if millisecond > _last_millisecond:
            _last_millisecond = millisecond
            # The top bit stays free, so that counting within a millisecond never overflows.
            _last_counter = int.from_bytes(os.urandom(10), "big") >> (80 - _COUNTER_BITS + 1)
        # Else the host's clock stands still or went back; the counter goes on.
        first = _last_counter
        counters = list(accumulate(steps, _one_and, initial=first))[1:]
        _last_counter = counters[-1]
        stamp = (_last_millisecond & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | 0b10 << 62
    return [_uuid(stamp | (counter >> 62) << 64 | counter & _LOW_BITS) for counter in counters]


def _one_and(counter: int, step: int) -> int:
    return counter + 1 + step


def _uuid(number: int) -> UUID:
    # UUID() looks at every form that an id may be given in, which takes four times as long.
    made = object.__new__(UUID)
    object.__setattr__(made, "int", number)
    object.__setattr__(made, "is_safe", SafeUUID.unknown)
    return made


def position(places: int = 1) -> int:
    """Return the first of so many places in the ready index, behind all this process drew before.

    For SQLite, whose own clock is too coarse to order two enqueues.
    """
    global _last_position
    with _drawing:
        first = max(clock.host_microseconds(), _last_position + 1)
        _last_position = first + places - 1
        return first


def process_id() -> str:
    """Return who takes a lock, for people to read: host, process and a part drawn each time."""
    return f"{socket.gethostname()[:200]}-{os.getpid()}-{uuid4().hex[:8]}"


def _forget_the_parent() -> None:
    """Let a forked child draw its own counter: two processes must not count from one value."""
    global _drawing, _last_millisecond
    _drawing = Lock()
    _last_millisecond = 0


os.register_at_fork(after_in_child=_forget_the_parent)
