"""What a keeper looks for under all that should have happened, asked in one statement.

Each net is rarely needed, and has statements of its own. Whether it would catch anything is asked
for all of them together, since an idle database must not be asked ten things every ten seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from django_once.sql.statements import Statements
from django_once.sql.values import LOCK


class Caught(NamedTuple):
    """Which nets may have caught something."""

    at_gates: bool
    in_tallies: bool
    by_pauses: bool
    by_locks: bool
    to_drain: bool


def caught(statements: Statements, backend: str) -> Caught:
    """Return which nets may have caught something; each is a look at the begin of an index."""
    asked = (
        "SELECT 1 FROM once_job AS job WHERE job.backend = %s AND job.gate IS NOT NULL "
        "AND job.finished_at IS NULL",
        "SELECT 1 FROM once_tally",
        f"SELECT 1 FROM once_pause WHERE until <= {statements.now}",
        "SELECT 1 FROM once_job AS job WHERE job.status = 'READY' AND job.blocked_by <> '' "
        "AND job.blocked_by > %s AND job.blocked_by < %s",
        "SELECT 1 FROM once_worker WHERE drain_requested_at IS NOT NULL AND lost_at IS NULL "
        "AND stopped_at IS NULL",
    )
    sql = "SELECT " + ", ".join(f"EXISTS ({one} LIMIT 1)" for one in asked)
    # What begins with "lock:" lies before what begins with the sign after the colon.
    parameters = [backend, LOCK, LOCK[:-1] + ";"]
    (row,) = statements.rows_by_index(sql, parameters)
    return Caught(*map(bool, row))
