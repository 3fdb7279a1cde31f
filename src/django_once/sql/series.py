"""The statements of series: how a key moves on, one generation at a time.

Whoever moves a series locks its row first, and the jobs under its key after that. So of two that
would name the next job one comes second, and finds a generation that is no longer its own. An
`exactly_once` body has its job's row before; nobody who holds a series waits for such a row.

Many attempts of different series end together. A batch that waited for one row while it holds
others could stand crosswise to somebody's own transaction. So a batch takes what is free, and what
is not is ended one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django_once import clock, identity
from django_once.sql.statements import Statements
from django_once.sql.values import PREDECESSOR
from django_once.sql.words import write_json

SUCCESSOR: Final = {
    "job_id": "uuid", "next_id": "uuid", "n": "integer", "turn": "integer", "due": "text",
    "expires": "text", "given": "text", "named": "text",
}  # fmt: skip

# What a job hands down to the next of its series, as it is.
INHERITED: Final = (
    "backend", "task", "queue", "priority", "max_attempts", "max_deaths", "timeout", "delivery",
    "every", "limit_key", "fair_key", "gate", "rule",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a series stands, read under its lock."""

    id: UUID
    backend: str
    key: str
    generation: int
    job: UUID | None
    is_cancelled: bool

    def is_at(self, turn: Turn) -> bool:
        """Return whether this turn is the present one."""
        return (self.job, self.generation) == (turn.job, turn.generation)


@dataclass(frozen=True, slots=True)
class Turn:
    """A job's turn in its series, which never changes."""

    job: UUID
    backend: str
    key: str
    generation: int
    every: timedelta | None
    planned_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """The next job of a series: what it does not inherit from the one before."""

    after: Turn
    id: UUID
    due_at: datetime
    args: str | None = None
    kwargs: str | None = None


class SeriesStatements:
    """The statements of series on one connection."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.key = statements.connection.ops.quote_name("key")

    def lock(self, backend: str, key: str) -> Stand:
        """Lock a series, which begins here if nobody has named its key before."""
        found = self._locked(backend, key)
        if found is None:
            self._begin(backend, key)
            found = self._locked(backend, key)
        assert found is not None
        return found

    def lock_free(self, backend: str, keys: Sequence[str]) -> list[Stand]:
        """Lock and return those of these series that nobody else has locked."""
        sql = (
            f"SELECT {self._columns()} FROM once_series AS series WHERE series.backend = %s "
            f"AND series.{self.key} IN ({self.statements.marks(keys)}) "
            f"ORDER BY series.id {self.statements.LOCK_FREE}"
        )
        return [self._stand(row) for row in self.statements.rows(sql, [backend, *keys])]

    def move(self, stand: Stand, job: UUID) -> bool:
        """Let this job be the present one of its series; False when the series has moved on."""
        sql = (
            "UPDATE once_series SET generation = generation + 1, job = %s, cancelled_at = NULL "
            "WHERE id = %s AND generation = %s"
        )
        return self._moved(sql, [self.statements.key(job)], stand)

    def stop(self, stand: Stand) -> bool:
        """Let the series have no present job; False when it has moved on."""
        sql = (
            "UPDATE once_series SET generation = generation + 1, job = NULL, "
            f"cancelled_at = {self.statements.now} WHERE id = %s AND generation = %s"
        )
        return self._moved(sql, [], stand)

    def _moved(self, sql: str, first: list[Any], stand: Stand) -> bool:
        where = [self.statements.key(stand.id), stand.generation]
        return self.statements.count(sql, [*first, *where]) == 1

    def turns(self, jobs: Sequence[UUID]) -> list[Turn]:
        """Return the turns of those of these jobs that have one."""
        sql = (
            f"SELECT job.id, job.backend, job.{self.key}, job.generation, job.every, "
            "coalesce(job.run_after, job.enqueued_at), job.expires_at FROM once_job AS job "
            f"WHERE job.id IN ({self.statements.marks(jobs)}) AND job.{self.key} IS NOT NULL"
        )
        keys = list(map(self.statements.key, jobs))
        return [self._turn(row) for row in self.statements.rows(sql, keys)]

    def ends(self, jobs: Sequence[UUID]) -> dict[UUID, str]:
        """Return those of these jobs that have ended, and the reason."""
        sql = (
            "SELECT job.id, job.reason FROM once_job AS job "
            f"WHERE job.id IN ({self.statements.marks(jobs)}) "
            "AND job.status IN ('SUCCESSFUL', 'FAILED')"
        )
        keys = list(map(self.statements.key, jobs))
        return {UUID(str(job)): reason for job, reason in self.statements.rows(sql, keys)}

    def status_of(self, job: UUID) -> str | None:
        """Return a job's status, or None when it was pruned; call it under the series' lock."""
        # Without the lock of an exactly_once body, which would be waited for: a plain read shows
        # such a job as running, and it is.
        sql = "SELECT status FROM once_job WHERE id = %s"
        for (status,) in self.statements.rows(sql, [self.statements.key(job)]):
            return str(status)
        return None

    def running(self, backend: str, keys: Sequence[str]) -> set[str]:
        """Return those of these keys under which a job runs."""
        sql = (
            f"SELECT DISTINCT job.{self.key} FROM once_job AS job WHERE job.backend = %s "
            f"AND job.{self.key} IN ({self.statements.marks(keys)}) AND job.status = 'RUNNING'"
        )
        return {key for (key,) in self.statements.rows(sql, [backend, *keys])}

    def end_waiting(self, stand: Stand, reason: str, entry: str) -> int:
        """End what waits under this key; count it."""
        now = self.statements.now
        sql = (
            f"UPDATE once_job AS job SET status = 'FAILED', reason = %s, blocked_by = '', "
            f"position = NULL, gate_rank = NULL, unique_hash = NULL, finished_at = {now}, "
            "cancel_requested_at = "
            f"coalesce(job.cancel_requested_at, {now}), "
            f"history = {self.statements.with_entry('%s')} "
            f"WHERE job.{self.key} = %s AND job.backend = %s AND job.status = 'READY'"
        )
        return self.statements.count(sql, [reason, entry, stand.key, stand.backend])

    def ask_running_to_end(self, stand: Stand) -> int:
        """Ask what runs under this key to end, but for what is locked; count it."""
        sql = (
            f"SELECT job.id FROM once_job AS job WHERE job.{self.key} = %s AND job.backend = %s "
            f"AND job.status = 'RUNNING' ORDER BY job.id {self.statements.LOCK_FREE}"
        )
        rows = self.statements.rows(sql, [stand.key, stand.backend])
        jobs = [UUID(str(job)) for (job,) in rows]
        return self.statements.cancel_running(jobs) if jobs else 0

    def succeed(self, successors: Sequence[Successor]) -> int:
        """Store the next job of each of these turns, made of the one before; count them."""
        statements = self.statements
        inherited = ", ".join(INHERITED)
        taken = ", ".join(f"job.{name}" for name in INHERITED)
        due = statements.as_moment("o.due")
        place = statements.position("o.n", len(successors))
        sql = (
            f"INSERT INTO once_job (id, {inherited}, {self.key}, meta, args, kwargs, generation, "
            "run_after, due_at, expires_at, enqueued_at, position) "
            f"SELECT o.next_id, {taken}, job.{self.key}, job.meta, coalesce(o.given, job.args), "
            f"coalesce(o.named, job.kwargs), o.turn, {due}, {due}, "
            f"{statements.as_moment('o.expires')}, {statements.now}, "
            f"CASE WHEN {due} <= {statements.now} AND job.gate IS NULL THEN {place} END "
            f"FROM {statements.unpacked(SUCCESSOR)} JOIN once_job AS job ON job.id = o.job_id"
        )
        return statements.count(sql, [self._batch(successors)])

    def admit(self, backend: str, keys: Iterable[str]) -> int:
        """Let the job that waited for its predecessor run, where none runs now; count them."""
        wanted = sorted(set(keys))
        free = sorted(set(wanted) - self.running(backend, wanted)) if wanted else []
        if not free:
            return 0
        statements = self.statements
        sql = (
            "UPDATE once_job AS job SET blocked_by = '', position = "
            f"CASE WHEN job.due_at <= {statements.now} AND job.gate IS NULL "
            f"THEN {statements.position()} END "
            f"WHERE job.blocked_by = '{PREDECESSOR}' AND job.status = 'READY' "
            f"AND job.backend = %s AND job.{self.key} IN ({statements.marks(free)})"
        )
        return statements.count(sql, [backend, *free])

    def forgotten(self, backend: str, most: int) -> list[str]:
        """Return keys whose next job waits for a predecessor that does not run any more."""
        sql = (
            f"SELECT job.{self.key} FROM once_job AS job WHERE job.status = 'READY' "
            f"AND job.blocked_by <> '' AND job.blocked_by = '{PREDECESSOR}' AND job.backend = %s "
            "AND NOT EXISTS (SELECT 1 FROM once_job AS running "
            f"WHERE running.{self.key} = job.{self.key} AND running.backend = job.backend "
            "AND running.status = 'RUNNING') LIMIT %s"
        )
        return [key for (key,) in self.statements.rows(sql, [backend, most])]

    def without_a_job(self, backend: str, keys: Sequence[str]) -> set[str]:
        """Return those of these keys whose series should have a job that waits or runs, and has
        none."""
        sql = (
            f"SELECT series.{self.key} FROM once_series AS series LEFT JOIN once_job AS job "
            "ON job.id = series.job WHERE series.backend = %s "
            f"AND series.{self.key} IN ({self.statements.marks(keys)}) "
            "AND (series.cancelled_at IS NOT NULL OR job.status IN ('READY', 'RUNNING'))"
        )
        healthy = {key for (key,) in self.statements.rows(sql, [backend, *keys])}
        return set(keys) - healthy

    def _locked(self, backend: str, key: str) -> Stand | None:
        lock = "" if not self.statements.LOCK_FREE else "FOR UPDATE"
        sql = (
            f"SELECT {self._columns()} FROM once_series AS series "
            f"WHERE series.backend = %s AND series.{self.key} = %s {lock}"
        )
        for row in self.statements.rows(sql, [backend, key]):
            return self._stand(row)
        return None

    def _begin(self, backend: str, key: str) -> None:
        nothing = (
            "ON DUPLICATE KEY UPDATE generation = generation"
            if self.statements.vendor == "mysql"
            else "ON CONFLICT DO NOTHING"
        )
        sql = f"INSERT INTO once_series (id, backend, {self.key}) VALUES (%s, %s, %s) {nothing}"
        self.statements.count(sql, [self.statements.key(identity.nonce()), backend, key])

    def _columns(self) -> str:
        return (
            f"series.id, series.backend, series.{self.key}, series.generation, series.job, "
            "series.cancelled_at"
        )

    def _stand(self, row: Sequence[Any]) -> Stand:
        id, backend, key, generation, job, cancelled_at = row
        return Stand(
            UUID(str(id)), backend, key, generation, UUID(str(job)) if job else None,
            cancelled_at is not None,
        )  # fmt: skip

    def _turn(self, row: Sequence[Any]) -> Turn:
        job, backend, key, generation, every, planned_at, expires_at = row
        return Turn(
            UUID(str(job)), backend, key, generation,
            None if every is None else timedelta(seconds=every),
            self.statements.moment(planned_at),
            None if expires_at is None else self.statements.moment(expires_at),
        )  # fmt: skip

    def _batch(self, successors: Sequence[Successor]) -> str:
        return write_json([self._member(n, one) for n, one in enumerate(successors)])

    def _member(self, ordinal: int, one: Successor) -> dict[str, Any]:
        expires_at = one.after.expires_at
        if expires_at is not None:
            expires_at = one.due_at + (expires_at - one.after.planned_at)
        member = {
            "job_id": str(self.statements.key(one.after.job)),
            "next_id": str(self.statements.key(one.id)), "n": ordinal,
            "turn": one.after.generation + 1, "due": self._text(one.due_at),
            "expires": self._text(expires_at), "given": one.args, "named": one.kwargs,
        }  # fmt: skip
        # A member that is left out is NULL on every database; a JSON null is not.
        return {name: value for name, value in member.items() if value is not None}

    def _text(self, moment: datetime | None) -> str | None:
        if moment is None:
            return None
        column = clock.to_column(moment, self.statements.vendor)
        return column if isinstance(column, str) else str(column.isoformat(" "))
