"""What stands against all jobs of a task: strikes and an open breaker, as conditions of the claim.

Each asks a table that is almost always empty, once for a statement and not for each row. Of a
strike it is asked only whether there is one for the task: with which arguments is read by whoever
has the task's code.
"""

from __future__ import annotations

from typing import Final

UNSTRUCK: Final = (
    "(job.backend, job.task) NOT IN (SELECT strike.backend, strike.task FROM once_strike AS strike)"
)
CLOSED: Final = (
    "(job.backend, job.task) NOT IN (SELECT tally.backend, tally.task FROM once_tally AS tally "
    "WHERE tally.kind = 'breaker' AND tally.opened_at IS NOT NULL)"
)

# Of a job that a strike has blocked, which names it as its reason: that strike is no more.
RESTORED: Final = "job.reason NOT IN (SELECT strike.id FROM once_strike AS strike)"
# Of a retry that waits for its task's budget: there is none any more.
UNBUDGETED: Final = (
    "(job.backend, job.task) NOT IN (SELECT tally.backend, tally.task FROM once_tally AS tally "
    "WHERE tally.kind = 'budget')"
)
# Of a retry: it is of this backend and task, and has waited as long as it had to.
OF_BUDGET: Final = (
    "job.position IS NULL AND job.blocked_by <> '' AND job.blocked_by = 'budget' "
    "AND job.backend = %s AND job.task = %s AND job.due_at <= {now}"
)
# Of a job that waits for a breaker: it is of this backend and task.
OF_BREAKER: Final = (
    "job.position IS NULL AND job.blocked_by <> '' AND job.blocked_by = 'breaker' "
    "AND job.backend = %s AND job.task = %s"
)
