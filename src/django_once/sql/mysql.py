"""The statements on MySQL and MariaDB: what others return from an UPDATE is locked and read first.

Neither has `UPDATE … RETURNING` nor `UPDATE … SKIP LOCKED`. So a transition of several rows is
one short transaction here: a locking SELECT, then the guarded UPDATE of what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from django_once.sql.predicates import CLAIMABLE, TAKING, WORKER_LIVES
from django_once.sql.statements import Statements
from django_once.sql.values import Attempt, Holder, Lane, NewJob, Placed, Stored

TYPES: Final = {
    "uuid": "varchar(36)", "text": "longtext", "integer": "bigint", "real": "double",
}  # fmt: skip

# The longest wait_timeout that MySQL knows on any system.
LONGEST_PAUSE: Final = 2_000_000


class MySQL(Statements):
    """The statements of a connection to MySQL 8 or MariaDB 10.6, or later."""

    vendor = "mysql"
    # Without the hint a small table is walked whole, and the walk waits for the row of a body.
    DELETE_BY_KEY = "DELETE once_job FROM once_job FORCE INDEX (PRIMARY)"

    def stamp(self) -> str:
        return f"date_format({self.now}, '%%Y-%%m-%%dT%%H:%%i:%%s.%%fZ')"

    def later(self, seconds: str) -> str:
        return f"({self.now} + interval ({seconds}) * 1000000 microsecond)"

    def after(self, moment: str, seconds: str) -> str:
        return f"(cast({moment} AS datetime(6)) + interval ({seconds}) * 1000000 microsecond)"

    def position(self, ordinal: str = "0", places: int = 1) -> str:
        return f"(timestampdiff(microsecond, '1970-01-01', {self.now}) + {ordinal})"

    def joined(self, *parts: str) -> str:
        return f"concat({', '.join(parts)})"

    def length(self, text: str) -> str:
        return f"char_length({text})"

    def unpacked(self, columns: Mapping[str, str]) -> str:
        described = ", ".join(
            f"{name} {TYPES[kind]} PATH '$.{name}'" for name, kind in columns.items()
        )
        return f"JSON_TABLE(%s, '$[*]' COLUMNS({described})) AS o"

    def insert(self, job: NewJob) -> Stored:
        if self.connection.mysql_is_mariadb:
            return super().insert(job)
        names, values, computed, parameters = self.new_columns(job)
        with self.together():
            self.count(
                f"INSERT INTO once_job (id, args, kwargs, {names}) "
                f"VALUES (%s, %s, %s, {values}, {computed})",
                [self.key(job.id), job.args, job.kwargs, *parameters],
            )
            found = "SELECT enqueued_at, position FROM once_job WHERE id = %s"
            ((enqueued_at, position),) = self.rows(found, [self.key(job.id)])
        return Stored(self.moment(enqueued_at), position is not None)

    def claim(
        self, holder: Holder, nonce: UUID, lanes: Sequence[tuple[Lane, int]], most: int
    ) -> list[Attempt]:
        find = f"""
            SELECT job.id FROM once_job AS job FORCE INDEX (once_job_ready)
            WHERE job.backend = %s AND job.queue = %s AND job.priority = %s
            AND job.position >= %s AND {CLAIMABLE} AND {self.is_open("job.queue")}
            ORDER BY job.position LIMIT %s {self.LOCK_FREE}"""
        with self.together():
            ((lives,),) = self.rows(f"SELECT {WORKER_LIVES}", [self.key(holder.id)])
            if not lives:
                return []
            found: list[Any] = []
            for lane, low in lanes:
                left = most - len(found)
                if not left:
                    break
                where = [
                    holder.backend, lane.queue, lane.priority, low, holder.backend, left,
                ]  # fmt: skip
                found += [job for (job,) in self.rows(find, where)]
            return self._take(holder, nonce, found) if found else []

    def _take(self, holder: Holder, nonce: UUID, locked: list[Any]) -> list[Attempt]:
        these = f"job.id IN ({self.marks(locked)})"
        take = f"UPDATE once_job AS job SET {TAKING} WHERE {these} AND job.status = 'READY'"
        self.count(take, [self.key(nonce), self.key(holder.id), holder.name, *locked])
        read = (
            f"SELECT {self.claimed_columns()} FROM once_job AS job "
            f"WHERE {these} AND job.claim = %s AND job.status = 'RUNNING'"
        )
        return self.attempts(self.rows(read, [*locked, self.key(nonce)]), nonce)

    def change_held(self, changes: str, columns: Mapping[str, str], batch: str) -> set[UUID]:
        held = (
            f"SELECT job.id FROM {self.unpacked(columns)} STRAIGHT_JOIN once_job AS job "
            "ON job.id = o.job_id WHERE job.claim = o.nonce AND job.status = 'RUNNING' FOR UPDATE"
        )
        change = (
            f"UPDATE {self.unpacked(columns)} STRAIGHT_JOIN once_job AS job "
            f"ON job.id = o.job_id SET {changes} "
            "WHERE job.claim = o.nonce AND job.status = 'RUNNING'"
        )
        with self.together():
            found = {UUID(str(job)) for (job,) in self.rows(held, [batch])}
            if found:
                self.count(change, [batch])
        return found

    @contextmanager
    def pauses_limited(self, longest_pause: float) -> Iterator[None]:
        if self.connection.in_atomic_block:
            yield
            return
        is_mariadb = self.connection.mysql_is_mariadb
        name = "idle_transaction_timeout" if is_mariadb else "wait_timeout"
        self.count(f"SET SESSION {name} = {max(1, int(min(longest_pause, LONGEST_PAUSE)))}")
        try:
            yield
        finally:
            self._lift(name)

    def _lift(self, limit: str) -> None:
        """Take the limit from the session: what its other bodies do in silence is their affair."""
        if self.connection.connection is None:
            return
        try:
            self.count(f"SET SESSION {limit} = DEFAULT")
        except (DatabaseError, InterfaceError):
            self.connection.close()

    def _between(self, lower: Lane | None, upper: Lane | None) -> tuple[str, list[Any]]:
        # A comparison of row values is not used as a range of an index here.
        conditions, parameters = "", list[Any]()
        for bound, sign in ((lower, ">"), (upper, "<")):
            if bound is not None:
                conditions += f" AND (queue {sign} %s OR (queue = %s AND priority {sign} %s))"
                parameters += [bound.queue, bound.queue, bound.priority]
        return conditions, parameters

    def step(self, n: int, between: str) -> str:
        # The index holds what waits as well. To look for a ready row here would walk all of that,
        # so this steps into whatever lane comes next, and looks at its end: NULL sorts first.
        return f"""
            SELECT {n}, step_{n}.queue, step_{n}.priority, (
                SELECT job.position FROM once_job AS job FORCE INDEX (once_job_ready)
                WHERE job.status = 'READY' AND job.backend = step_{n}.backend
                AND job.queue = step_{n}.queue AND job.priority = step_{n}.priority
                ORDER BY job.position DESC LIMIT 1
            ) IS NOT NULL FROM (
                SELECT backend, queue, priority FROM once_job FORCE INDEX (once_job_ready)
                WHERE backend = %s AND status = 'READY'{between}
                ORDER BY queue, priority LIMIT 1
            ) AS step_{n}"""

    def place(self, index: str, where: str, parameters: Sequence[Any], most: int) -> list[Placed]:
        find = f"""
            SELECT job.id, job.backend, job.gate FROM once_job AS job FORCE INDEX ({index})
            WHERE job.status = 'READY' AND {where}
            ORDER BY {self.order_in(index)} LIMIT %s {self.LOCK_FREE}"""
        with self.together():
            rows = self.rows(find, [*parameters, most])
            if not rows:
                return []
            found = [job for job, _, _ in rows]
            order = " ".join(f"WHEN %s THEN {n}" for n in range(len(found)))
            position = self.position(f"CASE job.id {order} END")
            place = (
                f"UPDATE once_job AS job SET {self.placing(position)} "
                f"WHERE id IN ({self.marks(found)}) AND status = 'READY' AND position IS NULL"
            )
            self.count(place, [*found, *found, *found])
        return [Placed(backend, gate) for _, backend, gate in rows]
