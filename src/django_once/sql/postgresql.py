"""The statements on PostgreSQL: one round trip each, under plans that no statistics decide.

A burst into a table that was never analyzed makes the planner guess; a sequential scan with a
sort then takes the place of fifty steps into an index. So a statement of the engine's own is sent
together with settings that leave the planner no such choice, in one message, which the server
runs as one transaction. Inside somebody else's transaction the settings would outlive the
statement and are left out. A thread of the engine's own has a session that begins with them.

`statement_timestamp()` and not `now()`, which stands still in a transaction, nor
`clock_timestamp()`, which is volatile and so cannot use an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, DataError

from django_once.sql import own, prepared
from django_once.sql.endings import BEGIN_SUCCESS
from django_once.sql.predicates import CLAIMABLE, TAKING, WORKER_LIVES
from django_once.sql.repeat import has_ended_transaction
from django_once.sql.statements import Statements
from django_once.sql.values import Attempt, Holder, Lane, Placed

# The server counts milliseconds, in 31 bits.
LONGEST_PAUSE: Final = 2_000_000

TYPES: Final = {"uuid": "uuid", "text": "text", "integer": "bigint", "real": "double precision"}

BY_INDEX: Final = (
    # Whoever meets another at a row shall see what became of it, not an error.
    "SET LOCAL transaction_isolation = 'read committed'; "
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
    "SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; "
    "SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; "
)


class PostgreSQL(Statements):
    """The statements of a connection to PostgreSQL 14 or later."""

    vendor = "postgresql"
    # NO KEY: a foreign key of somebody else's to a job must not make the job look locked.
    LOCK_FREE = "FOR NO KEY UPDATE SKIP LOCKED"

    def stamp(self) -> str:
        return f"to_char({self.now} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

    def later(self, seconds: str) -> str:
        return f"({self.now} + {seconds} * interval '1 second')"

    def after(self, moment: str, seconds: str) -> str:
        return f"({moment} + {seconds} * interval '1 second')"

    def position(self, ordinal: str = "0", places: int = 1) -> str:
        first = f"(extract(epoch from {self.now}) * 1000000)::bigint"
        # As a query of its own it is reckoned once for all rows.
        return first if ordinal == "0" else f"((SELECT {first}) + {ordinal})"

    def unpacked(self, columns: Mapping[str, str]) -> str:
        described = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns.items())
        return f"json_to_recordset(%s::json) AS o({described})"

    def batch(
        self, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]
    ) -> tuple[str, list[Any]]:
        # Arrays are read in half the time of JSON, and their text is quicker to write.
        kinds = dict(columns)
        of_column = dict(zip(columns, zip(*rows, strict=True), strict=True))
        ordinality = ""
        if "n" in kinds:
            # The server counts by itself; it is from one on here, and only the order matters.
            del kinds["n"]
            ordinality = "WITH ORDINALITY "
        arrays = ", ".join(f"%s::{TYPES[kind]}[]" for kind in kinds.values())
        names = [*kinds, "n"] if ordinality else list(kinds)
        table = f"unnest({arrays}) {ordinality}AS o({', '.join(names)})"
        return table, [array(kinds[name], of_column[name]) for name in kinds]

    def as_moment(self, parameter: str) -> str:
        return f"{parameter}::timestamptz"

    def inserted(self, sql: str, parameters: Sequence[Any]) -> Sequence[Any]:
        return prepared.insert(self.connection, sql, parameters)

    def rows_by_index(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        if self._in_transaction():
            return self.rows(sql, parameters)
        session = own.session_of(self.connection.alias)
        if session is not None:
            return session.rows(sql, parameters)
        if self.connection.settings_dict["OPTIONS"].get("server_side_binding"):
            # Parameters bound by the server allow one statement a message only.
            with self.planned():
                return self.rows(sql, parameters)
        with self.connection.cursor() as cursor:
            cursor.execute(BY_INDEX + sql, parameters)
            while cursor.description is None and cursor.nextset():
                continue
            return list(cursor.fetchall())

    def see_what_commits(self) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_isolation = 'read committed'")

    @contextmanager
    def planned(self) -> Iterator[None]:
        is_own = not self._in_transaction()
        with self.together():
            if is_own:
                with self.connection.cursor() as cursor:
                    cursor.execute(BY_INDEX)
            yield

    def _in_transaction(self) -> bool:
        return self.connection.in_atomic_block or not self.connection.get_autocommit()

    def lanes_between(self, backend: str, known: Iterable[Lane]) -> list[Lane]:
        bounds: list[Lane | None] = [None, *sorted(known), None]
        # A row value below and above every lane: no priority reaches these.
        gaps = [
            (lower.queue if lower else "", lower.priority if lower else -32768,
             upper.queue if upper else "\U0010ffff", upper.priority if upper else 32767)
            for lower, upper in pairwise(bounds)
        ]  # fmt: skip
        step = """
            SELECT job.queue, job.priority FROM once_job AS job
            WHERE job.backend = %s AND job.status = 'READY' AND job.position IS NOT NULL
            AND (job.queue, job.priority) > ({0}.queue, {0}.priority)
            AND (job.queue, job.priority) < ({0}.to_queue, {0}.to_priority)
            ORDER BY job.queue, job.priority LIMIT 1"""
        sql = f"""
            WITH RECURSIVE lane AS (
                SELECT found.queue, found.priority, gap.to_queue, gap.to_priority
                FROM unnest(%s::text[], %s::smallint[], %s::text[], %s::smallint[])
                    AS gap(queue, priority, to_queue, to_priority)
                CROSS JOIN LATERAL ({step.format("gap")}) AS found
                UNION ALL
                SELECT found.queue, found.priority, lane.to_queue, lane.to_priority
                FROM lane CROSS JOIN LATERAL ({step.format("lane")}) AS found
            ) SELECT queue, priority FROM lane"""
        parameters = [[gap[i] for gap in gaps] for i in range(4)]
        return [Lane(*row) for row in self.rows_by_index(sql, [*parameters, backend, backend])]

    def claim(
        self, holder: Holder, nonce: UUID, lanes: Sequence[tuple[Lane, int]], most: int
    ) -> list[Attempt]:
        sql = f"""
            UPDATE once_job AS job SET {TAKING}
            WHERE job.id = ANY (ARRAY(
                SELECT ready.id
                FROM unnest(%s::text[], %s::smallint[], %s::bigint[]) AS lane(queue, priority, low)
                CROSS JOIN LATERAL (
                    SELECT job.id FROM once_job AS job
                    WHERE job.backend = %s AND job.queue = lane.queue
                    AND job.priority = lane.priority AND job.position >= lane.low AND {CLAIMABLE}
                    ORDER BY job.position LIMIT %s {self.LOCK_FREE}
                ) AS ready WHERE {self.is_open("lane.queue")} LIMIT %s
            )) AND job.status = 'READY' AND {WORKER_LIVES}
            RETURNING {self.claimed_columns()}"""
        queues = [lane.queue for lane, _ in lanes]
        priorities = [lane.priority for lane, _ in lanes]
        lows = [low for _, low in lanes]
        rows = self.rows_by_index(
            sql,
            [nonce, holder.id, holder.name, queues, priorities, lows, holder.backend, most,
             holder.backend, most, holder.id],
        )  # fmt: skip
        return self.attempts(rows, nonce)

    def begin_success(self, job: UUID, claim: UUID, longest_pause: float) -> str | None:
        sql = (
            f"{BEGIN_SUCCESS} AND status = 'RUNNING' RETURNING pg_current_xact_id()::text, "
            "set_config('idle_in_transaction_session_timeout', %s, true)"
        )
        milliseconds = str(int(min(longest_pause, LONGEST_PAUSE) * 1000))
        for mark, _ in self.rows(sql, [*self._own(job, claim), milliseconds]):
            return str(mark)
        return None

    def verify_success(self, job: UUID, claim: UUID, mark: str, value: str, ran: float) -> bool:
        sql = f"{self.verifying()} AND pg_current_xact_id()::text = %s"
        try:
            return self.count(sql, [value, -ran, -ran, *self._own(job, claim), mark]) == 1
        except DatabaseError as error:
            if not has_ended_transaction(error):
                raise
            return False

    def place(self, index: str, where: str, parameters: Sequence[Any], most: int) -> list[Placed]:
        sql = f"""
            WITH waiting AS (
                SELECT job.id, job.due_at FROM once_job AS job
                WHERE job.status = 'READY' AND {where}
                ORDER BY {self.order_in(index)} LIMIT %s {self.LOCK_FREE}
            ), placed AS (SELECT id, row_number() OVER (ORDER BY due_at, id) AS n FROM waiting)
            UPDATE once_job AS job SET {self.placing(self.position("placed.n"))}
            FROM placed
            WHERE job.id = placed.id AND job.status = 'READY' AND job.position IS NULL
            RETURNING job.backend, job.gate"""
        return [Placed(*row) for row in self.rows_by_index(sql, [*parameters, most])]


def array(kind: str, values: Sequence[Any]) -> str:
    """Return values as the text of an array."""
    if kind == "uuid":
        return "{" + ",".join([value.hex for value in values]) + "}"
    if None in values:
        written = ["NULL" if value is None else array(kind, [value])[1:-1] for value in values]
        return "{" + ",".join(written) + "}"
    # Escaped all at once, between marks that stand in no text which a database keeps.
    joined = "\x00".join(map(str, values)).replace("\\", "\\\\").replace('"', '\\"')
    if joined.count("\x00") >= len(values):
        raise DataError("A text holds a NUL character, which PostgreSQL cannot keep.")
    return '{"' + joined.replace("\x00", '","') + '"}'
