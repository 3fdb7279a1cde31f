"""The raw limit of PostgreSQL: psycopg, prepared statements, binary where it is quicker."""

from __future__ import annotations

import time
from typing import Any, Final
from uuid import UUID, uuid4

import psycopg

from django_once.identity import job_id

TASK: Final = "bench.project.work.tasks.nothing"

CLAIM: Final = b"""
    UPDATE once_job SET status = 'RUNNING', reason = '', fence = fence + 1, attempt = attempt + 1,
    claim = %s, worker = %s, worker_name = 'raw', last_attempted_at = NULL
    WHERE id = ANY (ARRAY(
        SELECT id FROM once_job WHERE backend = 'default' AND queue = 'default' AND priority = 0
        AND position > %s AND status = 'READY' AND position IS NOT NULL
        ORDER BY backend, queue, priority, position LIMIT %s FOR UPDATE SKIP LOCKED
    )) RETURNING id, task, args, kwargs, position"""

SETTLE: Final = b"""
    UPDATE once_job SET status = 'SUCCESSFUL', return_value = 'null', position = NULL,
    unique_hash = NULL, started_at = statement_timestamp(),
    last_attempted_at = statement_timestamp(), finished_at = statement_timestamp()
    WHERE id = ANY (%s) AND claim = %s AND status = 'RUNNING'"""

INSERT: Final = b"""
    INSERT INTO once_job (id, args, kwargs, backend, task, queue, priority, enqueued_at, due_at,
    position) VALUES (%s, %s, '{}', 'default', %s, 'default', 0, statement_timestamp(),
    statement_timestamp(), (extract(epoch from statement_timestamp()) * 1000000)::bigint)"""

INSERT_MANY: Final = b"""
    INSERT INTO once_job (id, args, kwargs, backend, task, queue, priority, enqueued_at, due_at,
    position) SELECT id, args, '{}', 'default', %s, 'default', 0, statement_timestamp(),
    statement_timestamp(), (extract(epoch from statement_timestamp()) * 1000000)::bigint + n
    FROM unnest(%s::uuid[], %s::text[]) WITH ORDINALITY AS one(id, args, n)"""

FILL: Final = b"""
    INSERT INTO once_job (args, task, delivery, priority, position)
    SELECT '[' || replace(%(argument)s, '{n}', n::text) || ']', %(task)s, %(delivery)s,
    n %% %(priorities)s - %(priorities)s / 2,
    (extract(epoch from statement_timestamp()) * 1000000)::bigint + n
    FROM generate_series(1, %(jobs)s::bigint) AS n"""


class PostgreSQL:
    """One bare connection, in autocommit."""

    def __init__(self, url: str) -> None:
        self.line: psycopg.Connection[Any] = psycopg.connect(
            url, autocommit=True, prepare_threshold=0
        )
        # The plan that the index was made for, whatever the statistics are at this moment.
        self.line.execute(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; "
            "SET jit = off",
            prepare=False,
        )

    def fill(
        self, jobs: int, task: str, argument: str = "{n}", priorities: int = 1,
        delivery: str = "at_least_once",
    ) -> None:  # fmt: skip
        """Put so many ready jobs of a task there, in one statement."""
        self.line.execute(
            FILL,
            {
                "jobs": jobs, "task": task, "argument": argument, "priorities": priorities,
                "delivery": delivery,
            },
        )  # fmt: skip

    def drain(self, jobs: int, batch: int) -> float:
        """Claim and settle so many jobs, so many per statement; return how many per second."""
        self.fill(jobs, TASK)
        worker, low, done = uuid4(), 0, 0
        cursor = self.line.cursor(binary=True)
        began = time.monotonic()
        while done < jobs:
            nonce = uuid4()
            rows = cursor.execute(CLAIM, [nonce, worker, low, batch]).fetchall()
            if not rows:
                break
            low = max(row[4] for row in rows)
            cursor.execute(SETTLE, [[row[0] for row in rows], nonce])
            done += cursor.rowcount
        return done / (time.monotonic() - began)

    def insert(self, seconds: float) -> float:
        """Insert jobs, one per commit; return how many per second."""
        cursor, count = self.line.cursor(), 0
        began = time.monotonic()
        until = began + seconds
        while time.monotonic() < until:
            cursor.execute(INSERT, [job_id(), f"[{count}]", TASK])
            count += 1
        return count / (time.monotonic() - began)

    def insert_many(self, jobs: int, batch: int) -> float:
        """Insert jobs, so many per statement and commit; return how many per second."""
        batches: list[tuple[list[UUID], list[str]]] = [
            ([job_id() for _ in range(batch)], [f"[{first + n}]" for n in range(batch)])
            for first in range(0, jobs, batch)
        ]
        cursor = self.line.cursor()
        began = time.monotonic()
        for ids, arguments in batches:
            cursor.execute(INSERT_MANY, [TASK, ids, arguments])
        return jobs / (time.monotonic() - began)

    def close(self) -> None:
        """Close the connection."""
        self.line.close()
