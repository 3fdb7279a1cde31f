"""The board: memory that the supervisor, the keeper and the workers share.

A worker writes there what nobody could ask it later: that it is alive, and which bodies it has
called. When it dies, its supervisor reads who was at work and who had only been claimed. The keeper
writes when the lease was last renewed; by that time every worker knows how long it may trust it.

Each field has one writer. An entry is filled before it is marked as used and unmarked before it is
changed, so that a process killed in between leaves no half of one.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from itertools import count
from typing import Final
from uuid import UUID

from django_once import clock

# uptime of the last good renewal and of the keeper's last sign of life, whether wakeups arrive,
# whether the keeper is ready,
# whether a worker stored what is due later
_HEAD: Final = struct.Struct("=dd???")
# worker id, pid, uptime of the last sign of life, ended jobs, state, claims waiting to start;
# by the keeper, whether the worker's lease was taken away, and until when its claims are in doubt;
# by the supervisor, whether it is about to be killed
_PLACE: Final = struct.Struct("=16sqdqbi?d?")
# job, claim, uptime at the start, uptime at which it must be over (0: never)
_ENTRY: Final = struct.Struct("=16s16sdd")
_ENTRY_SIZE: Final = _ENTRY.size + 1
_SIGN: Final = struct.Struct("=d")
_COUNT: Final = struct.Struct("=q")
_WAITING: Final = struct.Struct("=i")
# How many of the jobs that were begun last are remembered: more than wait to be settled.
REMEMBERED: Final = 1024
_JOB_SIZE: Final = 16

EMPTY, STARTING, IDLE, BUSY, DRAINING, LEAVING = range(6)


@dataclass(frozen=True, slots=True)
class Started:
    """A body that was called and had not ended."""

    job: UUID
    claim: UUID
    at: float
    over_at: float


class Board:
    """Places for so many workers, each with room for so many bodies of both kinds at once."""

    def __init__(self, processes: int, concurrency: int) -> None:
        self.concurrency = concurrency
        entries = 2 * concurrency * _ENTRY_SIZE
        self._place_size = _PLACE.size + entries + REMEMBERED * _JOB_SIZE
        self._memory = mmap.mmap(-1, _HEAD.size + processes * self._place_size)
        self.places = tuple(
            Place(self._memory, _HEAD.size + n * self._place_size, 2 * concurrency)
            for n in range(processes)
        )

    @property
    def renewed_at(self) -> float:
        """The uptime at which the last good renewal was sent; 0 before the first."""
        return float(_SIGN.unpack_from(self._memory, 0)[0])

    def renew(self, at: float) -> None:
        """Publish that a renewal sent at this uptime was good."""
        _SIGN.pack_into(self._memory, 0, at)

    @property
    def kept_at(self) -> float:
        """The uptime of the keeper's last sign of life; 0 before the first."""
        return float(_SIGN.unpack_from(self._memory, 8)[0])

    def keep(self) -> None:
        """Give a sign of the keeper's life."""
        _SIGN.pack_into(self._memory, 8, clock.uptime())

    @property
    def wakes(self) -> bool:
        """Whether wakeups arrive, so that idle workers may look less often."""
        return bool(self._memory[16])

    @wakes.setter
    def wakes(self, arrive: bool) -> None:
        self._memory[16] = arrive

    @property
    def is_ready(self) -> bool:
        """Whether the keeper has found the database as it must be."""
        return bool(self._memory[17])

    @is_ready.setter
    def is_ready(self, found: bool) -> None:
        self._memory[17] = found

    @property
    def is_later(self) -> bool:
        """Whether a worker has stored a job that is due later, and the keeper has not looked."""
        return bool(self._memory[18])

    @is_later.setter
    def is_later(self, has_been_stored: bool) -> None:
        self._memory[18] = has_been_stored


class Place:
    """What one worker publishes."""

    __slots__ = ("_at", "_begun", "_entries", "_memory", "_numbers")

    def __init__(self, memory: mmap.mmap, at: int, entries: int) -> None:
        self._memory = memory
        self._at = at
        self._entries = entries
        self._begun = at + _PLACE.size + entries * _ENTRY_SIZE
        self._numbers = count()

    def take(self, worker: UUID) -> None:
        """Clear this place for a worker that is about to be forked."""
        for slot in range(self._entries):
            self._memory[self._entry(slot)] = 0
        size = REMEMBERED * _JOB_SIZE
        self._memory[self._begun : self._begun + size] = bytes(size)
        self._fill(worker.bytes, clock.uptime(), STARTING)

    def leave(self) -> None:
        """Say that nobody is here."""
        self._fill(bytes(16), 0.0, EMPTY)

    @property
    def worker(self) -> UUID:
        """The id of the worker that has this place."""
        return UUID(bytes=self._read()[0])

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._read()[1])

    @property
    def seen_at(self) -> float:
        """The uptime of its last sign of life."""
        return float(self._read()[2])

    @property
    def ended(self) -> int:
        """How many jobs were ended here, by all who have had this place."""
        return int(self._read()[3])

    @property
    def state(self) -> int:
        """What it is doing: EMPTY, STARTING, IDLE, BUSY, DRAINING or LEAVING."""
        return int(self._read()[4])

    @property
    def waiting(self) -> int:
        """How many claims it holds that have not started."""
        return int(self._read()[5])

    @property
    def is_lost(self) -> bool:
        """Whether its lease was taken away, so that it must stop."""
        return bool(self._memory[self._at + 45])

    def lose(self) -> None:
        """Tell it that its lease was taken away."""
        self._memory[self._at + 45] = True

    @property
    def doubted_until(self) -> float:
        """The uptime up to which claims were sent that somebody may have given back since."""
        return float(_SIGN.unpack_from(self._memory, self._at + 46)[0])

    def doubt(self, until: float) -> None:
        """Tell it that claims sent until then must ask the database before they start."""
        _SIGN.pack_into(self._memory, self._at + 46, until)

    @property
    def is_condemned(self) -> bool:
        """Whether it is about to be killed, so that it must take nothing more."""
        return bool(self._memory[self._at + 54])

    def condemn(self, is_condemned: bool) -> None:
        """Tell it that it is about to be killed, or is not after all."""
        self._memory[self._at + 54] = is_condemned

    def settle_in(self, pid: int) -> None:
        """Publish the process that took this place."""
        _COUNT.pack_into(self._memory, self._at + 16, pid)

    def sign(self) -> None:
        """Give a sign of life."""
        _SIGN.pack_into(self._memory, self._at + 24, clock.uptime())

    def count(self, ended: int) -> None:
        """Publish how many jobs were ended here."""
        _COUNT.pack_into(self._memory, self._at + 32, ended)

    def become(self, state: int) -> None:
        """Publish another state."""
        self._memory[self._at + 40] = state

    def hold(self, waiting: int) -> None:
        """Publish how many claims wait to start."""
        _WAITING.pack_into(self._memory, self._at + 41, waiting)

    def begin(self, slot: int, job: UUID, claim: UUID, over_at: float) -> None:
        """Publish that the body in this slot is about to be called."""
        entry = self._entry(slot)
        _ENTRY.pack_into(self._memory, entry + 1, job.bytes, claim.bytes, clock.uptime(), over_at)
        self._memory[entry] = 1
        at = self._begun + next(self._numbers) % REMEMBERED * _JOB_SIZE
        self._memory[at : at + _JOB_SIZE] = job.bytes

    def begun(self) -> set[UUID]:
        """Return the jobs that were begun last, whose outcomes may be on their way."""
        found = {body.job for body in self.started()}
        for at in range(self._begun, self._begun + REMEMBERED * _JOB_SIZE, _JOB_SIZE):
            found.add(UUID(bytes=self._memory[at : at + _JOB_SIZE]))
        return found

    def end(self, slot: int) -> None:
        """Publish that the body in this slot has ended; its outcome is on its way."""
        self._memory[self._entry(slot)] = 0

    def started(self) -> list[Started]:
        """Return the bodies that were called and have not ended."""
        found = []
        for slot in range(self._entries):
            entry = self._entry(slot)
            if self._memory[entry]:
                job, claim, at, over_at = _ENTRY.unpack_from(self._memory, entry + 1)
                found.append(Started(UUID(bytes=job), UUID(bytes=claim), at, over_at))
        return found

    def _entry(self, slot: int) -> int:
        return self._at + _PLACE.size + slot * _ENTRY_SIZE

    def _fill(self, worker: bytes, seen_at: float, state: int) -> None:
        _PLACE.pack_into(
            self._memory, self._at, worker, 0, seen_at, self.ended, state, 0, False, 0.0, False
        )  # fmt: skip

    def _read(self) -> tuple[bytes, int, float, int, int, int, bool, float, bool]:
        return _PLACE.unpack_from(self._memory, self._at)
