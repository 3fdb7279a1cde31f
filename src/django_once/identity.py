"""Ids and nonces that a client draws before it sends a statement.

Whoever asks "did my statement arrive?" after a lost answer needs a name for it that the
database did not make. So both are drawn here: the id of a job (UUIDv7, growing within a
process, hence kind to the primary key's index) and the nonce of a claim (UUIDv4).
"""

from __future__ import annotations

import os
import socket
from threading import Lock
from uuid import UUID, uuid4

from django_once import clock

__all__ = ["job_id", "nonce", "position", "process_id"]

nonce = uuid4

_COUNTER_BITS = 74
_drawing = Lock()
_last_millisecond = 0
_last_counter = 0
_last_position = 0


def job_id() -> UUID:
    """Return a UUIDv7 that is larger than every one this process drew before."""
    global _last_millisecond, _last_counter
    with _drawing:
        millisecond = clock.wall_microseconds() // 1000
        if millisecond > _last_millisecond:
            _last_millisecond = millisecond
            # The top bit stays free, so that counting within a millisecond never overflows.
            _last_counter = int.from_bytes(os.urandom(10), "big") >> (80 - _COUNTER_BITS + 1)
        else:
            # The host's clock may stand still or go back; the counter goes on.
            _last_counter += 1 + os.urandom(1)[0]
        counter = _last_counter
        stamp = _last_millisecond & 0xFFFFFFFFFFFF
    high = counter >> 62
    low = counter & ((1 << 62) - 1)
    return UUID(int=(stamp << 80) | (0x7 << 76) | (high << 64) | (0b10 << 62) | low)


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
