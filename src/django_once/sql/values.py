"""What goes into the statements and what comes out of them: plain values, no rows of an ORM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

# Where a job waits although its time has come.
UNKNOWN_TASK: Final = "unknown_task"
PREDECESSOR: Final = "predecessor"
LIMIT: Final = "limit"
FAIR: Final = "fair"
PAUSED: Final = "paused"
STRUCK: Final = "struck"
BREAKER: Final = "breaker"
# Where a retry waits, and why one ends that has no place in the budget of its task.
BUDGET: Final = "budget"
# Before the name of the lock that a job waits for.
LOCK: Final = "lock:"

# Why a job ended or went back, where the four statuses cannot tell.
RAISED: Final = "raised"
CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"
LOST: Final = "lost"
DIED: Final = "died"
TIMED_OUT: Final = "timed_out"
RELEASED: Final = "released"
# The lock that its task asks for was held.
LOCKED: Final = "locked"
SKIPPED: Final = "skipped"
SUPERSEDED: Final = "superseded"
SNOOZED: Final = "snoozed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job that is about to be stored; times are the user's wish, not yet the database's."""

    id: UUID
    backend: str
    task: str
    args: str
    kwargs: str
    queue: str
    priority: int
    run_after: datetime | timedelta | None = None
    # By how many seconds each job of a bulk is due later than the one before it.
    step: float = 0.0
    expires: timedelta | None = None
    max_attempts: int = 1
    max_deaths: int = 3
    timeout: float | None = None
    delivery: str = "at_least_once"
    meta: str = "{}"
    key: str | None = None
    generation: int = 0
    every: float | None = None
    blocked_by: str = ""
    gate: str | None = None
    rule: str | None = None
    limit_key: str | None = None
    fair_key: str | None = None
    unique_hash: str | None = None
    # How long it stays unique at least, in seconds.
    unique_for: float | None = None
    channel: str | None = None
    # How long it is kept after a success, in seconds; 0 for not at all.
    kept_for: float | None = None
    order_key: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database said of a job that it stored."""

    enqueued_at: datetime
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A job whose time has come: whose it is, and the gate it must pass first."""

    backend: str
    gate: str | None


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """The ready jobs of one queue and one priority, in the order of their positions."""

    queue: str
    priority: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who claims: a worker by its row, under the name that results show."""

    id: UUID
    name: str
    backend: str


class Attempt(NamedTuple):
    """One try of one job, held under the nonce of the claim that began it.

    A tuple, since tens of thousands are made in a second: a frozen dataclass takes ten times as
    long to fill.
    """

    id: UUID
    claim: UUID
    task: str
    args: str
    kwargs: str
    queue: str
    priority: int
    position: int
    fence: int
    attempt: int
    failures: int
    max_attempts: int
    deaths: int
    max_deaths: int
    delivery: str
    timeout: float | None
    is_suspect: bool
    is_expired: bool
    cancel_requested: bool
    history_length: int
    worker_name: str
    key: str | None = None
    gate: str | None = None
    # What stands against it all the same: a pause, a strike, a breaker; or nothing.
    stopped_by: str = ""
    kept_for: float | None = None
    order_key: str | None = None

    @property
    def is_removed(self) -> bool:
        """Whether nothing of its job is to be kept after a success."""
        return self.kept_for == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a body said of the job after its own in its series; what it left out stays as it was."""

    at: datetime | None = None
    after: float | None = None
    args: str | None = None
    kwargs: str | None = None
    stops: bool = False


class Outcome(NamedTuple):
    """What becomes of a job when an attempt of it ends.

    `status` is SUCCESSFUL or FAILED for good, or READY for another time: after `delay` seconds
    by the database's clock, or when what is named in `blocked_by` lets it. `entry` is the text of
    the history's next member without its opening brace. An attempt that was not started is
    `given_back`: it does not count. One that `died` is charged to the job. Whoever ends an attempt
    that is not its own has `taken` it: the nonce goes, so that the attempt finds it is superseded.
    An outcome with a `key` ends together with what its series does next. A success that is
    `removed` leaves nothing of its job.
    """

    id: UUID
    claim: UUID
    status: str
    return_value: str | None = None
    ran: float | None = None
    reason: str = ""
    blocked_by: str = ""
    entry: str | None = None
    delay: float = 0.0
    failed: bool = False
    given_back: bool = False
    died: bool = False
    taken: bool = False
    suspect: bool = False
    key: str | None = None
    next: Next | None = None
    removed: bool = False

    @property
    def is_plain_success(self) -> bool:
        """Whether it says that the body returned, what, and after how long; and nothing else."""
        is_whole = self.return_value is not None and self.ran is not None
        return is_whole and self.status == "SUCCESSFUL" and self[5:] == NOTHING_ELSE


# What an outcome holds behind status, value and time where nothing more is to be said.
NOTHING_ELSE: Final = tuple(Outcome._field_defaults.values())[2:]


@dataclass(frozen=True, slots=True)
class Whose:
    """Which running jobs are meant, as SQL and its parameters."""

    where: str
    parameters: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A running job as its row stands, for those who must end an attempt that is not theirs."""

    id: UUID
    claim: UUID
    task: str
    worker: UUID | None
    worker_name: str
    attempt: int
    delivery: str
    was_started: bool
    is_suspect: bool
    failures: int
    max_attempts: int
    deaths: int
    max_deaths: int
    cancel_requested: bool
    history_length: int


@dataclass(frozen=True, slots=True)
class Told:
    """How far an attempt is, as its body says."""

    job: UUID
    claim: UUID
    done: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Swept:
    """A job that was taken from a worker which is no longer there, and what became of it."""

    id: UUID
    task: str
    status: str
    reason: str
    worker: UUID | None


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What a cancel did: jobs it ended, running ones it asked to end, those that were locked.

    A job is locked while an `exactly_once` body of it runs: its commit decides.
    """

    ended: int = 0
    requested: int = 0
    busy: int = 0


# What became of an attempt whose answer was lost: it ended as its worker said, it runs on under its
# claim, or somebody else ended it.
Fate = Literal["settled", "held", "superseded"]
