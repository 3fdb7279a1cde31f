"""How jobs come in, become ready and are claimed, as far as all databases can share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from django_once import clock
from django_once.sql.endings import Endings
from django_once.sql.pauses import OPEN_QUEUE, UNCOVERED
from django_once.sql.pieces import pieces
from django_once.sql.predicates import STOPPED_BY
from django_once.sql.values import Attempt, Holder, Lane, NewJob, Placed, Stored

# Two lanes that a worker knows, and whatever may lie between them.
Gap = tuple[Lane | None, Lane | None]
# SQLite refuses a compound of more than five hundred SELECTs.
GAPS_AT_ONCE: Final = 200
# A rank is above every one of a lower priority: a position has 51 bits.
RANKS_OF_A_PRIORITY: Final = 2**52
# What of a job's terms depends on its arguments.
MEMBERS: Final = {"gate", "rule", "limit_key", "fair_key", "unique_hash"}


class Statements(Endings):
    """The statements of one connection; the classes of the other modules know their database."""

    # Enqueue: a job exists if and only if the caller's transaction commits.

    def insert(self, job: NewJob) -> Stored:
        """Store one job and return when the database took it."""
        names, values, computed, parameters = self.new_columns(job)
        sql = (
            f"INSERT INTO once_job (id, args, kwargs, {names}) VALUES (%s, %s, %s, {values}, "
            f"{computed}) RETURNING enqueued_at, position"
        )
        own = [self.key(job.id), job.args, job.kwargs]
        enqueued_at, position = self.inserted(sql, [*own, *parameters])
        return Stored(self.moment(enqueued_at), position is not None)

    def inserted(self, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
        """Run an INSERT of one row and return what it returns."""
        (row,) = self.rows(sql, parameters)
        found: Sequence[Any] = row
        return found

    def insert_many(
        self, job: NewJob, members: Sequence[tuple[UUID, str, str]],
        terms: Sequence[Mapping[str, Any]] = (),
    ) -> Stored:  # fmt: skip
        """Store many jobs that differ in id, arguments and terms only, in one statement.

        In several of one transaction when their arguments are too long for that.
        """
        with self.together():
            self.insert_each(job, members, terms)
            first = self.key(members[0][0])
            found = "SELECT enqueued_at, position FROM once_job WHERE id = %s"
            ((enqueued_at, position),) = self.rows(found, [first])
        return Stored(self.moment(enqueued_at), position is not None)

    def insert_each(
        self, job: NewJob, members: Sequence[tuple[UUID, str, str]],
        terms: Sequence[Mapping[str, Any]], at_conflict: str = "",
    ) -> None:  # fmt: skip
        """Store many jobs in as few statements as fit, each ending with what a conflict does."""
        own = dict.fromkeys(MEMBERS & terms[0].keys(), "text") if terms else {}
        apart: dict[str, Any] = dict.fromkeys(own)
        common = replace(job, **apart) if apart else job
        names, values, computed, parameters = self.new_columns(
            common, "o.n", len(members), has_gate=job.gate is not None
        )
        columns = {"job_id": "uuid", "n": "integer", "given": "text", "named": "text", **own}
        if job.step:
            columns["lag"] = "real"
        taken = ", ".join(["o.job_id", "o.given", "o.named", *(f"o.{name}" for name in own)])
        batch: list[Any] = [
            (id, ordinal, args, kwargs) for ordinal, (id, args, kwargs) in enumerate(members)
        ]
        if own:
            batch = [
                (*row, *(more[name] for name in own))
                for row, more in zip(batch, terms, strict=True)
            ]
        if job.step:
            batch = [(*row, place * job.step) for place, row in enumerate(batch)]
        for piece in pieces(batch, _length):
            table, unpacked = self.batch(columns, piece)
            sql = (
                f"INSERT INTO once_job ({', '.join(['id', 'args', 'kwargs', *own])}, {names}) "
                f"SELECT {taken}, {values}, {computed} FROM {table}"
                # Without a WHERE, SQLite takes what follows for the condition of a join.
                f"{' WHERE true ' if at_conflict else ''}{at_conflict}"
            )
            self.count(sql, [*parameters, *unpacked])

    def new_columns(
        self, job: NewJob, ordinal: str = "0", places: int = 1, *, has_gate: bool = False
    ) -> tuple[str, str, str, list[Any]]:
        """Return the names, placeholders, computed values and parameters that jobs share."""
        common = {
            "backend": job.backend, "task": job.task, "queue": job.queue,
            "priority": job.priority, "max_attempts": job.max_attempts,
            "max_deaths": job.max_deaths, "timeout": job.timeout, "delivery": job.delivery,
            "meta": job.meta, **self._of_series(job), **_of_flow(job), **_of_channel(job),
        }  # fmt: skip
        due, wish, due_parameters = self.due(job.run_after)
        if job.step:
            due = wish = self.after(due, "o.lag")
        position = self.position(ordinal, places)
        if wish != "NULL":
            position = f"CASE WHEN {due} <= {self.now} THEN {position} END"
        if job.blocked_by or has_gate or job.gate is not None:
            position = "NULL"
            due_parameters = due_parameters[:2]
        further = "(%s + o.lag)" if job.step else "%s"
        expires = "NULL" if job.expires is None else self.later(further)
        computed = f"{self.now}, {wish}, {due}, {position}, {expires}"
        names = [*common, "enqueued_at", "run_after", "due_at", "position", "expires_at"]
        parameters = [*common.values(), *due_parameters]
        if job.expires is not None:
            parameters.append(self._seconds_until_expiry(job, job.expires))
        if job.unique_for is not None:
            names.append("unique_until")
            computed += f", {self.later('%s')}"
            parameters.append(job.unique_for)
        return ", ".join(names), ", ".join(["%s"] * len(common)), computed, parameters

    def _of_series(self, job: NewJob) -> dict[str, Any]:
        """Return the columns that only a job with a key fills."""
        if job.key is None:
            return {}
        return {
            self.connection.ops.quote_name("key"): job.key, "generation": job.generation,
            "every": job.every, "blocked_by": job.blocked_by,
        }  # fmt: skip

    def due(self, wish: datetime | timedelta | None) -> tuple[str, str, list[Any]]:
        """Return SQL for when a job is due and for the wish itself, and their parameters."""
        if wish is None:
            return self.now, "NULL", []
        if isinstance(wish, timedelta):
            later = self.later("%s")
            return later, later, [wish.total_seconds()] * 3
        moment = self.as_moment("%s")
        return moment, moment, [clock.to_column(wish, self.vendor)] * 3

    def _seconds_until_expiry(self, job: NewJob, expires: timedelta) -> float:
        """Return seconds from now to a job's expiry, which counts from when it may run."""
        seconds = expires.total_seconds()
        if isinstance(job.run_after, timedelta):
            seconds += job.run_after.total_seconds()
        elif isinstance(job.run_after, datetime):
            ((now,),) = self.rows(f"SELECT {self.now}")
            ahead = clock.to_utc(job.run_after) - self.moment(now)
            seconds += max(0.0, ahead.total_seconds())
        return seconds

    # Sentence 1: a job is held by at most one attempt.

    def lanes_between(self, backend: str, known: Iterable[Lane]) -> list[Lane]:
        """Return the lanes with ready jobs that are not among the known ones.

        Looks only between the known ones, each time by one step into the ready index, so the
        dead entries of a drained lane are never walked.
        """
        gaps: list[Gap] = list(pairwise([None, *sorted(known), None]))
        found: list[Lane] = []
        while gaps:
            # The first lane in each gap; what lies behind it is a gap again.
            steps = [
                (Lane(queue, priority), gaps[begin + n][1], is_ready)
                for begin in range(0, len(gaps), GAPS_AT_ONCE)
                for n, queue, priority, is_ready in self._first_lanes(
                    backend, gaps[begin : begin + GAPS_AT_ONCE]
                )
            ]
            found += [lane for lane, _, is_ready in steps if is_ready]
            gaps = [(lane, upper) for lane, upper, _ in steps]
        return found

    def _first_lanes(self, backend: str, gaps: Sequence[Gap]) -> list[Any]:
        """Return what `step` says of each gap in which there is a lane."""
        steps, parameters = [], []
        for n, (lower, upper) in enumerate(gaps):
            between, bounds = self._between(lower, upper)
            steps.append(self.step(n, between))
            parameters += [backend, *bounds]
        return self.rows(" UNION ALL ".join(steps), parameters)

    def _between(self, lower: Lane | None, upper: Lane | None) -> tuple[str, list[Any]]:
        conditions, parameters = "", list[Any]()
        if lower is not None:
            conditions += " AND (queue, priority) > (%s, %s)"
            parameters += [lower.queue, lower.priority]
        if upper is not None:
            conditions += " AND (queue, priority) < (%s, %s)"
            parameters += [upper.queue, upper.priority]
        return conditions, parameters

    def step(self, n: int, between: str) -> str:
        """SQL for n, queue and priority of a backend's first lane between, and if it is ready."""
        raise NotImplementedError

    def claim(
        self, holder: Holder, nonce: UUID, lanes: Sequence[tuple[Lane, int]], most: int
    ) -> list[Attempt]:
        """Take up to so many ready jobs, lane by lane from the given positions on.

        Locked rows are skipped. Nothing is taken for a worker that was declared lost.
        """
        raise NotImplementedError

    def claimed_columns(self) -> str:
        """SQL of what an attempt knows of its job.

        Whether a column is NULL is asked in Python: SQLite 3.40 answers `IS NOT NULL` wrongly in
        a RETURNING.
        """
        return (
            "job.id, job.task, job.args, job.kwargs, job.queue, job.priority, job.position, "
            "job.fence, job.attempt, job.failures, job.max_attempts, job.deaths, job.max_deaths, "
            f"job.delivery, job.timeout, job.suspect, job.expires_at < {self.now}, "
            f"job.cancel_requested_at, {self.length('job.history')}, job.worker_name, job.key, "
            f"job.gate, job.kept_for, job.order_key, {self.stopped_by()}"
        )

    def stopped_by(self) -> str:
        """SQL of the word for what stands against a job that was taken, or of nothing."""
        return STOPPED_BY.format(now=self.now, key=self.connection.ops.quote_name("key"))

    def is_unpaused(self) -> str:
        """SQL of the condition that no pause of a task or key covers a job."""
        return UNCOVERED.format(now=self.now, key=self.connection.ops.quote_name("key"))

    def is_open(self, queue: str) -> str:
        """SQL of the condition that a queue is not paused; the backend is a parameter."""
        return OPEN_QUEUE.format(queue=queue, backend="%s", now=self.now)

    def attempts(self, rows: Iterable[Sequence[Any]], nonce: UUID) -> list[Attempt]:
        """Return rows of `claimed_columns` as attempts under this nonce."""
        return [
            Attempt._make((
                id if isinstance(id, UUID) else UUID(id), nonce, *words, bool(suspect),
                bool(expired), cancel is not None, length, name, key, gate, stopped_by,
                kept, order,
            ))
            for (id, *words, suspect, expired, cancel, length, name, key, gate, kept, order,
                 stopped_by) in rows
        ]  # fmt: skip

    # Time passes, or what blocked them is gone: jobs get a place in the ready index.

    def promote(self, most: int) -> list[Placed]:
        """Give up to so many due jobs their position, the longest due first; return whose."""
        due = f"job.position IS NULL AND job.blocked_by = '' AND job.due_at <= {self.now}"
        return self.place("once_job_waiting", due, [], most)

    def readmit(self, blocked_by: str, tasks: Sequence[str], most: int) -> list[Placed]:
        """Give up to so many jobs of these tasks the position that was taken; return whose."""
        waiting = (
            "job.position IS NULL AND job.blocked_by <> '' AND job.blocked_by = %s "
            f"AND job.task IN ({self.marks(tasks)})"
        )
        return self.place("once_job_blocked", waiting, [blocked_by, *tasks], most)

    def let_go(self, blocked_by: str, unless: str, most: int) -> list[Placed]:
        """Do what `readmit` does for jobs of which a condition holds, whatever their task is."""
        waiting = (
            f"job.position IS NULL AND job.blocked_by <> '' AND job.blocked_by = %s AND {unless}"
        )
        return self.place("once_job_blocked", waiting, [blocked_by], most)

    def place(self, index: str, where: str, parameters: Sequence[Any], most: int) -> list[Placed]:
        """Place up to so many waiting jobs that this index leads to, the longest due first.

        What must pass a gate gets a rank there in place of a position.
        """
        raise NotImplementedError

    def order_in(self, index: str) -> str:
        """SQL of the order in which waiting jobs that this index leads to are placed."""
        # Those of one bulk are due at one moment; what leads to due jobs has no second column.
        return "job.due_at" if index == "once_job_waiting" else "job.due_at, job.id"

    def placing(self, position: str) -> str:
        """SQL of what such a job gets, from SQL for a place."""
        rank = f"(100 - job.priority) * {RANKS_OF_A_PRIORITY} + {position}"
        return (
            "blocked_by = CASE WHEN job.gate IS NULL THEN '' "
            "WHEN job.gate LIKE 'fair:%%' THEN 'fair' ELSE 'limit' END, "
            f"position = CASE WHEN job.gate IS NULL THEN {position} END, "
            f"gate_rank = CASE WHEN job.gate IS NOT NULL THEN coalesce(job.gate_rank, {rank}) END"
        )

    def seconds_to_next_due(self) -> float | None:
        """Return how long until the next waiting job is due, or None when none waits."""
        sql = (
            f"SELECT due_at, {self.now} FROM once_job WHERE status = 'READY' "
            "AND position IS NULL AND blocked_by = '' ORDER BY due_at LIMIT 1"
        )
        for due_at, now in self.rows_by_index(sql, []):
            return (self.moment(due_at) - self.moment(now)).total_seconds()
        return None


def _of_flow(job: NewJob) -> dict[str, Any]:
    """Return the columns that only a job with a limit, a share or a uniqueness fills."""
    said = {
        "gate": job.gate, "rule": job.rule, "limit_key": job.limit_key, "fair_key": job.fair_key,
        "unique_hash": job.unique_hash,
    }  # fmt: skip
    return {name: value for name, value in said.items() if value is not None}


def _of_channel(job: NewJob) -> dict[str, Any]:
    """Return the columns that only a notification fills."""
    if job.channel is None:
        return {}
    said: dict[str, Any] = {"channel": job.channel, "kept_for": job.kept_for}
    if job.order_key is not None:
        said |= {
            "order_key": job.order_key, "generation": job.generation, "blocked_by": job.blocked_by,
        }  # fmt: skip
    return said


def _length(row: Sequence[Any]) -> int:
    _, _, args, kwargs, *_ = row
    return len(args) + len(kwargs)
