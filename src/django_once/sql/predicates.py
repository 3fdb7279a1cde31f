"""What must hold of a job before a worker may claim it: a list of named conditions.

The claim is built from this list, and so is every explanation of why a job waits; the two
cannot drift apart. `holds` is SQL over the columns of `job`, alike on all databases. A condition
that the ready index keeps true by itself (its rows are READY and have a position) costs nothing
to check again. Words in braces are filled in by the statement: the claim asks whether a queue is
open once for a lane. What is almost always so it does not ask, but tells of each row it took: the
first of those conditions that does not hold, by the word for it in `blocked_by`.
"""

from __future__ import annotations

from dataclasses import dataclass

from django_once.sql.pauses import OPEN_QUEUE, UNCOVERED
from django_once.sql.stops import CLOSED, UNSTRUCK
from django_once.sql.values import BREAKER, PAUSED, STRUCK


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition of the claim: its name, its SQL, and what to say when it does not hold.

    What is told with the row names the word that says so.
    """

    name: str
    holds: str
    otherwise: str
    told: str = ""


PREDICATES: tuple[Predicate, ...] = (
    Predicate("ready", "job.status = 'READY'", "it has ended, or an attempt of it is running"),
    Predicate("unblocked", "job.blocked_by = ''", "something else must happen before"),
    Predicate("due", "job.position IS NOT NULL", "its time has not come"),
    Predicate("queue_open", OPEN_QUEUE, "its queue is paused"),
    Predicate("unpaused", UNCOVERED, "its task or key is paused", PAUSED),
    Predicate("unstruck", UNSTRUCK, "its task was struck, for some arguments", STRUCK),
    Predicate("unbroken", CLOSED, "the breaker of its task is open", BREAKER),
)

# What is asked of each row; the others are asked once for a lane, or told with the row.
CLAIMABLE = " AND ".join(
    predicate.holds for predicate in PREDICATES if "{" not in predicate.holds and not predicate.told
)

# What stands against a job that was taken all the same, or nothing: whoever took it looks further.
STOPPED_BY = (
    "CASE "
    + " ".join(f"WHEN NOT ({one.holds}) THEN '{one.told}'" for one in PREDICATES if one.told)
    + " ELSE '' END"
)

# What a claim makes of a job: nonce, worker and its name are parameters.
TAKING = (
    "status = 'RUNNING', reason = '', fence = job.fence + 1, attempt = job.attempt + 1, "
    "claim = %s, worker = %s, worker_name = %s, last_attempted_at = NULL, "
    # A job that is unique until it starts has a hash that begins with "s".
    "unique_hash = CASE WHEN job.unique_hash < 's' OR job.unique_until IS NOT NULL "
    "THEN job.unique_hash END"
)

# Nothing is taken for a worker that was declared lost; its id is a parameter.
WORKER_LIVES = (
    "EXISTS (SELECT 1 FROM once_worker AS worker WHERE worker.id = %s "
    "AND worker.lost_at IS NULL AND worker.stopped_at IS NULL)"
)
