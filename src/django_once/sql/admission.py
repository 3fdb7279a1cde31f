"""Admission in one statement, on PostgreSQL, at gates that only limit how many run at once.

A count in the statement that locks is of the moment before the lock was granted. So each
admission turns the gate on by one (`served`, which no share needs here), and whoever locks a gate
that was turned since its statement began sees so: PostgreSQL returns a locked row as it is now, and
the same row beside it as the statement sees it. Such a gate is asked again.

Nothing waits for the disk here: an admission that a crash of the server takes back has not been
claimed by anybody, since a claim commits after it and writes all that came before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from django_once.sql.gates import HOLDS, GateStatements

# What a gate came to: it is settled for now, it was touched meanwhile, it needs more than a count.
SETTLED: Final = "settled"
TOUCHED: Final = "touched"
BY_HAND: Final = "by hand"
# One of its jobs got a place.
PLACED: Final = "placed"

IS_SIMPLE: Final = (
    "head.rule LIKE '%%\"concurrency\"%%' AND head.rule NOT LIKE '%%\"interval\"%%' "
    "AND head.rule NOT LIKE '%%\"weight\"%%'"
)


# Of who waits at a limit; `gate` is SQL for its name, and whose it is a parameter.
WAITS: Final = (
    "job.backend = %s AND job.gate = {gate} AND job.blocked_by = 'limit' "
    "AND job.finished_at IS NULL AND job.status = 'READY' AND job.position IS NULL"
)
# The gates that are free.
LOCKED: Final = """
    locked AS MATERIALIZED (
        SELECT gate.id, gate.name, gate.served FROM once_gate AS gate
        WHERE gate.backend = %s AND gate.name = ANY (%s::text[])
        ORDER BY gate.name FOR NO KEY UPDATE SKIP LOCKED
    )"""
# What each of them comes to, and how many may pass if nobody has turned it meanwhile: by the rule
# of the first who waits. Joined by keys alone, since a join of two batches compares all with all.
STANDING: Final = f"""
    standing AS MATERIALIZED (
        SELECT locked.id, locked.name, head.rule,
        CASE WHEN seen.served IS DISTINCT FROM locked.served THEN '{TOUCHED}'
            WHEN NOT ({IS_SIMPLE}) THEN '{BY_HAND}' ELSE '{SETTLED}' END AS came_to,
        CASE WHEN seen.served = locked.served AND {IS_SIMPLE}
            THEN (head.rule::json ->> 'concurrency')::bigint - (
                SELECT count(*) FROM once_job AS job
                WHERE job.backend = %s AND job.gate = locked.name AND {HOLDS}
            ) ELSE 0 END AS room
        FROM locked LEFT JOIN once_gate AS seen ON seen.id = locked.id
        LEFT JOIN LATERAL (
            SELECT coalesce(job.rule, '{{}}') AS rule FROM once_job AS job
            WHERE {WAITS.format(gate="locked.name")} ORDER BY job.gate_rank LIMIT 1
        ) AS head ON true
    )"""
# The first who wait at each, as long as they say the same of their limit: nobody is overtaken.
PLACE: Final = f"""
    place AS MATERIALIZED (
        SELECT one.id, row_number() OVER (ORDER BY one.gate_rank, one.id) AS n
        FROM (
            SELECT first.*, sum(first.differs)
            OVER (PARTITION BY first.gate ORDER BY first.gate_rank, first.id) AS others
            FROM standing CROSS JOIN LATERAL (
                SELECT job.id, job.gate, job.gate_rank,
                CASE WHEN coalesce(job.rule, '{{}}') = standing.rule THEN 0 ELSE 1 END AS differs
                FROM once_job AS job WHERE {WAITS.format(gate="standing.name")}
                ORDER BY job.gate_rank LIMIT least(%s, standing.room)
                FOR NO KEY UPDATE SKIP LOCKED
            ) AS first
            WHERE standing.room > 0
        ) AS one WHERE one.others = 0
    )"""


def can_admit_at_once(gates: GateStatements) -> bool:
    """Return whether this connection can: it must see what others commit between statements."""
    connection = gates.statements.connection
    is_inside = connection.in_atomic_block or not connection.get_autocommit()
    return gates.statements.vendor == "postgresql" and not is_inside


def admit_at_once(
    gates: GateStatements, names: Sequence[str], each: int
) -> tuple[dict[str, str], Counter[str]]:
    """Give up to so many at each of these gates a place; return what the free ones came to, and
    how many passed each."""
    backend = gates.backend
    parameters = [backend, list(names), *[backend] * 3, each, backend]
    rows: list[Any] = gates.statements.rows_by_index(_admission(gates), parameters)
    came_to = {gate: word for gate, word, _ in rows if word != PLACED}
    return came_to, Counter(gate for gate, word, _ in rows if word == PLACED)


def _admission(gates: GateStatements) -> str:
    return f"""
        WITH {LOCKED}, {STANDING}, {PLACE}, placed AS (
            UPDATE once_job AS job
            SET blocked_by = '', position = {gates.statements.position("place.n")}
            FROM place WHERE job.id = place.id AND job.status BETWEEN 'READY' AND 'READY'
            AND job.position IS NULL AND job.blocked_by IN ('limit', 'fair')
            RETURNING job.gate
        ), turned AS (
            UPDATE once_gate AS gate SET served = gate.served + 1
            FROM standing WHERE gate.id = standing.id AND standing.room > 0
            AND gate.backend = %s
        )
        SELECT standing.name, standing.came_to, set_config('synchronous_commit', 'off', true)
        FROM standing
        UNION ALL SELECT placed.gate, '{PLACED}', '' FROM placed"""
