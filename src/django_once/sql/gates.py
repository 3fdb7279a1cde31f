"""The statements of gates: what jobs must pass before they get a place in the ready index.

A gate is a limit or a share. Its jobs hold no place when they are stored; whoever admits locks the
gate's row, then counts in a second statement who holds a slot, and then gives places to the first
of those that wait. A job holds its slot as long as it has a position: while it is ready, and while
it runs. So every statement that takes a position away frees a slot without knowing of it.

`gate_rank` orders those who wait, by priority and then by when they were due, in one number; it is
drawn when a job's time has come, and is NULL before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django_once import identity
from django_once.sql.statements import Statements
from django_once.sql.words import write_json

PLACE: Final = {"job_id": "uuid", "n": "integer", "delay": "real", "tag": "integer"}
SINCE_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Who holds a slot: what has a place, whether it is ready or runs.
HOLDS: Final = (
    "job.finished_at IS NULL AND job.blocked_by = '' AND job.gate_rank IS NOT NULL "
    "AND job.position IS NOT NULL"
)
STATE: Final = {"gate_name": "text", "free": "integer", "used": "integer"}


@dataclass(frozen=True, slots=True)
class Gate:
    """Where a gate stands, read under its lock.

    `free_at` is when its rate lets the next job begin, `served` how far its share was used; all
    are microseconds since 1970, as positions are.
    """

    name: str
    free_at: int
    served: int
    # The database's now when it was read.
    now: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that waits at a gate, in order of its rank."""

    id: UUID
    gate: str
    queue: str
    priority: int
    fair_key: str | None
    rule: str
    # When it was to begin at first, in microseconds since 1970.
    came_at: int


@dataclass(frozen=True, slots=True)
class Place:
    """What an admitted job gets: a place at the end, one of its own, or a moment to come again."""

    job: UUID
    delay: float | None = None
    position: int | None = None


class GateStatements:
    """The statements of the gates of one backend, on one connection."""

    def __init__(self, statements: Statements, backend: str) -> None:
        self.statements = statements
        self.backend = backend

    def lock_free(self, gates: Sequence[str]) -> dict[str, Gate]:
        """Lock and return those of these gates that nobody else has locked, in their order."""
        sql = (
            f"SELECT gate.name, gate.free_at, gate.served, {self.statements.now} "
            "FROM once_gate AS gate "
            f"WHERE gate.backend = %s AND gate.name IN ({self.statements.marks(gates)}) "
            f"ORDER BY gate.name {self.statements.LOCK_FREE}"
        )
        rows = self.statements.rows(sql, [self.backend, *gates])
        return {
            name: Gate(name, int(free_at), int(served), self._microseconds(now))
            for name, free_at, served, now in rows
        }

    def begin(self, gates: Sequence[str]) -> None:
        """Let there be a row for each of these gates, as it is for one that nobody has used."""
        nothing = (
            "ON DUPLICATE KEY UPDATE free_at = free_at"
            if self.statements.vendor == "mysql"
            else "ON CONFLICT DO NOTHING"
        )
        rows = ", ".join(["(%s, %s, %s)"] * len(gates))
        sql = f"INSERT INTO once_gate (id, backend, name) VALUES {rows} {nothing}"
        parameters: list[Any] = []
        for gate in sorted(gates):
            parameters += [self.statements.key(identity.nonce()), self.backend, gate]
        self.statements.count(sql, parameters)

    def known(self, gates: Sequence[str]) -> set[str]:
        """Return those of these gates that have a row, whoever holds it."""
        sql = (
            "SELECT name FROM once_gate WHERE backend = %s "
            f"AND name IN ({self.statements.marks(gates)})"
        )
        return {name for (name,) in self.statements.rows(sql, [self.backend, *gates])}

    def waited_at(self, gates: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return of those of these gates at which anybody waits the first one's rule, and how many
        hold a slot. Call it under their locks, after them."""
        if self.statements.vendor != "postgresql":
            rules = self._rules(gates)
            held = self._held(sorted(rules)) if rules else {}
            return {gate: (rule, held.get(gate, 0)) for gate, rule in rules.items()}
        sql = f"""
            SELECT wanted.gate, head.rule, (
                SELECT count(*) FROM once_job AS job
                WHERE job.backend = %s AND job.gate = wanted.gate AND {HOLDS}
            ) FROM unnest(%s::text[], %s::text[]) AS wanted(gate, reason)
            CROSS JOIN LATERAL (
                SELECT job.rule FROM once_job AS job
                WHERE {self._waits("wanted.gate", "wanted.reason")}
                ORDER BY job.gate_rank LIMIT 1
            ) AS head"""
        reasons = [reason_of(gate) for gate in gates]
        parameters = [self.backend, list(gates), reasons, self.backend]
        rows = self.statements.rows(sql, parameters)
        return {gate: (rule or "{}", int(held)) for gate, rule, held in rows}

    def _held(self, gates: Sequence[str]) -> dict[str, int]:
        sql = (
            "SELECT job.gate, count(*) FROM once_job AS job WHERE job.backend = %s "
            f"AND job.gate IN ({self.statements.marks(gates)}) AND {HOLDS} GROUP BY job.gate"
        )
        rows = self.statements.rows(sql, [self.backend, *gates])
        return {gate: int(count) for gate, count in rows}

    def _rules(self, gates: Sequence[str]) -> dict[str, str]:
        head = (
            f"SELECT job.gate, job.rule FROM once_job AS job {self._hint()} "
            f"WHERE {self._waits('%s')} ORDER BY job.gate_rank LIMIT 1"
        )
        sql = " UNION ALL ".join(f"SELECT * FROM ({head}) AS head_{n}" for n in range(len(gates)))
        asked = [[self.backend, gate, reason_of(gate)] for gate in gates]
        rows = self.statements.rows(sql, [one for three in asked for one in three])
        return {gate: rule or "{}" for gate, rule in rows}

    def waiting(self, wanted: Mapping[str, int]) -> list[Candidate]:
        """Lock and return up to so many of those that wait at each of these gates, by rank.

        What somebody has locked is passed over: who cancels a job must not hold up a gate.
        """
        if self.statements.vendor == "postgresql":
            return self._waiting_at_once(wanted)
        sql = (
            f"SELECT {self._columns()} FROM once_job AS job {self._hint()} "
            f"WHERE {self._waits('%s')} ORDER BY job.gate_rank LIMIT %s {self.statements.LOCK_FREE}"
        )
        found: list[Candidate] = []
        for gate, most in sorted(wanted.items()):
            rows = self.statements.rows(sql, [self.backend, gate, reason_of(gate), most])
            found += map(self._candidate, rows)
        return found

    def _waiting_at_once(self, wanted: Mapping[str, int]) -> list[Candidate]:
        sql = f"""
            SELECT waiting.*
            FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS wanted(gate, reason, most)
            CROSS JOIN LATERAL (
                SELECT {self._columns()} FROM once_job AS job
                WHERE {self._waits("wanted.gate", "wanted.reason")}
                ORDER BY job.gate_rank LIMIT wanted.most {self.statements.LOCK_FREE}
            ) AS waiting"""
        gates = sorted(wanted)
        arrays = [gates, [reason_of(gate) for gate in gates], [wanted[gate] for gate in gates]]
        return [self._candidate(row) for row in self.statements.rows(sql, [*arrays, self.backend])]

    def _hint(self) -> str:
        mysql = self.statements.vendor == "mysql"
        return f"{'FORCE INDEX (' if mysql else 'INDEXED BY '}once_job_gate{')' if mysql else ''}"

    def heads(self, gates: Mapping[str, Gate]) -> dict[str, int]:
        """Return the position of the next ready job of each lane whose time is among these gates.

        Looks from where the lane's head was the last time: what lies before it is dead, or no
        share's.
        """
        sql = (
            "SELECT job.position FROM once_job AS job WHERE job.backend = %s AND job.queue = %s "
            "AND job.priority = %s AND job.status = 'READY' AND job.position IS NOT NULL "
            "AND job.position >= %s ORDER BY job.position LIMIT 1"
        )
        found: dict[str, int] = {}
        for name, gate in gates.items():
            if name.startswith("fair:") and name.endswith(":"):
                _, queue, priority, _ = name.split(":", 3)
                lane = [self.backend, queue, int(priority), gate.free_at]
                for (position,) in self.statements.rows_by_index(sql, lane):
                    found[name] = int(position)
        return found

    def place(self, places: Sequence[Place]) -> int:
        """Give these jobs what they get; count those that still waited."""
        statements = self.statements
        pause = statements.later("o.delay")
        at_end = statements.position("o.n", len(places))
        changes = (
            "blocked_by = '', position = CASE WHEN o.delay IS NOT NULL THEN NULL "
            f"WHEN o.tag IS NOT NULL THEN o.tag ELSE {at_end} END, "
            f"due_at = CASE WHEN o.delay IS NULL THEN job.due_at ELSE {pause} END"
        )
        # Says it so that no partial index of those who wait serves: a planner that takes it for
        # tiny walks all of it once for every member of the batch.
        waits = (
            "job.status BETWEEN 'READY' AND 'READY' AND job.position IS NULL "
            "AND job.blocked_by IN ('limit', 'fair')"
        )
        batch = write_json([self._member(n, place) for n, place in enumerate(places)])
        return statements.count(self._joined("once_job AS job", PLACE, changes,
                                             "job.id = o.job_id", waits), [batch])  # fmt: skip

    def _member(self, ordinal: int, place: Place) -> dict[str, Any]:
        # A member that is left out is NULL on every database; a JSON null is not.
        member: dict[str, Any] = {"job_id": str(self.statements.key(place.job)), "n": ordinal}
        if place.delay is not None:
            member["delay"] = place.delay
        if place.position is not None:
            member["tag"] = place.position
        return member

    def move(self, gates: Sequence[Gate]) -> int:
        """Write down where these gates stand, under their locks; count them."""
        batch = write_json(
            [{"gate_name": gate.name, "free": gate.free_at, "used": gate.served} for gate in gates]
        )
        sql = self._joined(
            "once_gate AS gate", STATE,
            # A limit has no share: there it counts its turns (see `admission`).
            "free_at = o.free, "
            "served = CASE WHEN gate.name LIKE 'limit:%%' THEN gate.served + 1 ELSE o.used END",
            "gate.name = o.gate_name", "gate.backend = %s",
        )  # fmt: skip
        # The batch stands before its condition on MySQL, and in the middle elsewhere.
        return self.statements.count(sql, [batch, self.backend])

    def _joined(
        self, table: str, columns: Mapping[str, str], changes: str, join: str, where: str
    ) -> str:
        batch = self.statements.unpacked(columns)
        if self.statements.vendor == "mysql":
            return f"UPDATE {batch} STRAIGHT_JOIN {table} ON {join} SET {changes} WHERE {where}"
        return f"UPDATE {table} SET {changes} FROM {batch} WHERE {join} AND {where}"

    def with_waiting(self, after: str, most: int) -> list[str]:
        """Return up to so many gates, in their order, at which jobs wait.

        One step into the index for each, so that nobody walks over those who wait at one of them.
        """
        step = (
            "SELECT min(job.gate) FROM once_job AS job WHERE job.backend = %s "
            "AND job.gate > %s AND job.gate IS NOT NULL AND job.finished_at IS NULL"
        )
        found: list[str] = []
        while len(found) < most:
            ((gate,),) = self.statements.rows_by_index(step, [self.backend, after])
            if gate is None:
                break
            after = gate
            if self._is_waited_at(gate):
                found.append(gate)
        return found

    def lock_unused(self, seconds: float, most: int) -> list[Any]:
        """Lock and return up to so many gates without a job, whose time was so long ago."""
        ((now,),) = self.statements.rows(f"SELECT {self.statements.now}")
        before = self._microseconds(now) - int(seconds * 1_000_000)
        sql = (
            "SELECT gate.id FROM once_gate AS gate WHERE gate.backend = %s AND gate.free_at < %s "
            "AND gate.served < %s AND NOT EXISTS (SELECT 1 FROM once_job AS job "
            "WHERE job.backend = gate.backend AND job.gate = gate.name "
            f"AND job.gate IS NOT NULL AND job.finished_at IS NULL) LIMIT %s "
            f"{self.statements.LOCK_FREE}"
        )
        rows = self.statements.rows_by_index(sql, [self.backend, before, before, most])
        return [gate for (gate,) in rows]

    def forget(self, gates: Sequence[Any]) -> int:
        """Delete these gates: one without a row is one that nobody has used."""
        sql = f"DELETE FROM once_gate WHERE id IN ({self.statements.marks(gates)})"
        return self.statements.count(sql, gates)

    def _is_waited_at(self, gate: str) -> bool:
        sql = f"SELECT 1 FROM once_job AS job WHERE {self._waits('%s')} LIMIT 1"
        return bool(self.statements.rows_by_index(sql, [self.backend, gate, reason_of(gate)]))

    def _waits(self, gate: str, reason: str = "%s") -> str:
        return (
            f"job.backend = %s AND job.gate = {gate} AND job.blocked_by = {reason} "
            "AND job.finished_at IS NULL AND job.status = 'READY' AND job.position IS NULL"
        )

    def _candidate(self, row: Sequence[Any]) -> Candidate:
        id, gate, queue, priority, fair_key, rule, planned_at = row
        came_at = self._microseconds(planned_at)
        return Candidate(UUID(str(id)), gate, queue, priority, fair_key, rule or "{}", came_at)

    def _microseconds(self, moment: Any) -> int:
        return (self.statements.moment(moment) - SINCE_1970) // timedelta(microseconds=1)

    def _columns(self) -> str:
        return (
            "job.id, job.gate, job.queue, job.priority, job.fair_key, job.rule, "
            "coalesce(job.run_after, job.enqueued_at)"
        )


def reason_of(gate: str) -> str:
    """Return the word that stands in `blocked_by` of those who wait at a gate."""
    return gate.partition(":")[0]
