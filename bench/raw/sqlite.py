"""The raw limit of SQLite: Python's own module, WAL, one transaction per batch."""

from __future__ import annotations

import sqlite3
import time
from typing import Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from django_once.identity import job_id

TASK: Final = "bench.project.work.tasks.nothing"
NOW: Final = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"

CLAIM: Final = """
    UPDATE once_job SET status = 'RUNNING', reason = '', fence = fence + 1, attempt = attempt + 1,
    claim = ?, worker = ?, worker_name = 'raw', last_attempted_at = NULL
    WHERE id IN (
        SELECT id FROM once_job INDEXED BY once_job_ready
        WHERE backend = 'default' AND queue = 'default' AND priority = 0 AND position > ?
        AND status = 'READY' AND position IS NOT NULL ORDER BY position LIMIT ?
    ) RETURNING id, task, args, kwargs, position"""

SETTLE: Final = f"""
    UPDATE once_job SET status = 'SUCCESSFUL', return_value = 'null', position = NULL,
    unique_hash = NULL, started_at = {NOW}, last_attempted_at = {NOW}, finished_at = {NOW}
    WHERE id = ? AND claim = ? AND status = 'RUNNING'"""

INSERT: Final = f"""
    INSERT INTO once_job (id, args, kwargs, backend, task, queue, priority, enqueued_at, due_at,
    position) VALUES (?, ?, '{{}}', 'default', ?, 'default', 0, {NOW}, {NOW}, ?)"""

FILL: Final = """
    WITH RECURSIVE one(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < :jobs)
    INSERT INTO once_job (args, task, delivery, priority, position)
    SELECT '[' || replace(:argument, '{n}', n) || ']', :task, :delivery,
    n % :priorities - :priorities / 2, :first + n FROM one"""


class SQLite:
    """One bare connection, in autocommit."""

    def __init__(self, url: str) -> None:
        path = unquote(urlsplit(url).path)
        self.line = sqlite3.connect(path, isolation_level=None, timeout=20)
        self.line.execute("PRAGMA journal_mode=WAL")
        self.line.execute("PRAGMA synchronous=NORMAL")

    def fill(
        self, jobs: int, task: str, argument: str = "{n}", priorities: int = 1,
        delivery: str = "at_least_once",
    ) -> None:  # fmt: skip
        """Put so many ready jobs of a task there, in one statement."""
        self.line.execute(
            FILL,
            {
                "jobs": jobs, "task": task, "argument": argument, "priorities": priorities,
                "delivery": delivery, "first": _microseconds(),
            },
        )  # fmt: skip

    def drain(self, jobs: int, batch: int) -> float:
        """Claim and settle so many jobs, so many per statement; return how many per second."""
        self.fill(jobs, TASK)
        worker, low, done = uuid4().hex, 0, 0
        began = time.monotonic()
        while done < jobs:
            nonce = uuid4().hex
            rows = self.line.execute(CLAIM, [nonce, worker, low, batch]).fetchall()
            if not rows:
                break
            low = max(row[4] for row in rows)
            self.line.execute("BEGIN IMMEDIATE")
            done += self.line.executemany(SETTLE, [(row[0], nonce) for row in rows]).rowcount
            self.line.execute("COMMIT")
        return done / (time.monotonic() - began)

    def insert(self, seconds: float) -> float:
        """Insert jobs, one per commit; return how many per second."""
        count = 0
        began = time.monotonic()
        until = began + seconds
        while time.monotonic() < until:
            self.line.execute(INSERT, [job_id().hex, f"[{count}]", TASK, _microseconds()])
            count += 1
        return count / (time.monotonic() - began)

    def insert_many(self, jobs: int, batch: int) -> float:
        """Insert jobs, so many per statement and commit; return how many per second."""
        first = _microseconds()
        rows = [(job_id().hex, f"[{n}]", TASK, first + n) for n in range(jobs)]
        began = time.monotonic()
        for at in range(0, jobs, batch):
            self.line.execute("BEGIN IMMEDIATE")
            self.line.executemany(INSERT, rows[at : at + batch])
            self.line.execute("COMMIT")
        return jobs / (time.monotonic() - began)

    def close(self) -> None:
        """Close the connection."""
        self.line.close()


def _microseconds() -> int:
    # Places in the ready index are microseconds of the host's clock; no decision is taken by them.
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000
