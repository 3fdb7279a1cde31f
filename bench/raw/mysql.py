"""The raw limit of MariaDB and MySQL: the driver, READ COMMITTED, two statements per claim."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from django_once.identity import job_id

TASK: Final = "bench.project.work.tasks.nothing"

FIND: Final = """
    SELECT id, task, args, kwargs, position FROM once_job FORCE INDEX (once_job_ready)
    WHERE status = 'READY' AND backend = 'default' AND queue = 'default' AND priority = 0
    AND position > %s ORDER BY position LIMIT %s FOR UPDATE SKIP LOCKED"""

CLAIM: Final = """
    UPDATE once_job SET status = 'RUNNING', reason = '', fence = fence + 1, attempt = attempt + 1,
    claim = %s, worker = %s, worker_name = 'raw', last_attempted_at = NULL WHERE id IN %s"""

SETTLE: Final = """
    UPDATE once_job SET status = 'SUCCESSFUL', return_value = 'null', position = NULL,
    unique_hash = NULL, started_at = utc_timestamp(6), last_attempted_at = utc_timestamp(6),
    finished_at = utc_timestamp(6) WHERE id IN %s AND claim = %s AND status = 'RUNNING'"""

INSERT: Final = """
    INSERT INTO once_job (id, args, kwargs, backend, task, queue, priority, enqueued_at, due_at,
    position) VALUES (%s, %s, '{}', 'default', %s, 'default', 0, utc_timestamp(6),
    utc_timestamp(6), %s)"""

FILL: Final = """
    INSERT INTO once_job (id, args, kwargs, backend, task, delivery, queue, priority, enqueued_at,
    due_at, position) VALUES (%s, %s, '{}', 'default', %s, %s, 'default', %s, utc_timestamp(6),
    utc_timestamp(6), %s)"""
ROWS: Final = 1_000


class MySQL:
    """One bare connection, in autocommit."""

    def __init__(self, url: str) -> None:
        try:
            import MySQLdb as driver  # noqa: N813, PLC0415 - one of the two is enough
        except ImportError:
            import pymysql as driver  # noqa: PLC0415

        parts = urlsplit(url)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        said: dict[str, Any] = {
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "database": parts.path.strip("/"),
            "charset": "utf8mb4",
        }
        if "unix_socket" in asked:
            said["unix_socket"] = asked["unix_socket"]
        else:
            said.update(host=parts.hostname, port=parts.port or 3306)
        self.line: Any = driver.connect(**said)
        self.line.autocommit(True)
        self._run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def fill(
        self, jobs: int, task: str, argument: str = "{n}", priorities: int = 1,
        delivery: str = "at_least_once",
    ) -> None:  # fmt: skip
        """Put so many ready jobs of a task there."""
        first = _microseconds()
        rows = [
            (str(job_id()), f"[{argument.replace('{n}', str(n))}]", task, delivery,
             n % priorities - priorities // 2, first + n)
            for n in range(jobs)
        ]  # fmt: skip
        with self.line.cursor() as cursor:
            for at in range(0, jobs, ROWS):
                cursor.executemany(FILL, rows[at : at + ROWS])

    def drain(self, jobs: int, batch: int) -> float:
        """Claim and settle so many jobs, so many per statement; return how many per second."""
        self.fill(jobs, TASK)
        worker, low, done = str(uuid4()), 0, 0
        began = time.monotonic()
        while done < jobs:
            nonce = str(uuid4())
            self._run("BEGIN")
            rows = self._rows(FIND, [low, batch])
            if not rows:
                break
            ids = [row[0] for row in rows]
            self._run(CLAIM, [nonce, worker, ids])
            self._run("COMMIT")
            low = max(row[4] for row in rows)
            done += self._run(SETTLE, [ids, nonce])
        seconds = time.monotonic() - began
        self.line.rollback()
        return done / seconds

    def insert(self, seconds: float) -> float:
        """Insert jobs, one per commit; return how many per second."""
        count = 0
        began = time.monotonic()
        until = began + seconds
        while time.monotonic() < until:
            self._run(INSERT, [str(job_id()), f"[{count}]", TASK, _microseconds()])
            count += 1
        return count / (time.monotonic() - began)

    def insert_many(self, jobs: int, batch: int) -> float:
        """Insert jobs, so many per statement and commit; return how many per second."""
        first = _microseconds()
        rows = [(str(job_id()), f"[{n}]", TASK, first + n) for n in range(jobs)]
        began = time.monotonic()
        with self.line.cursor() as cursor:
            for at in range(0, jobs, batch):
                # The driver makes one statement of many rows of it.
                cursor.executemany(INSERT, rows[at : at + batch])
        return jobs / (time.monotonic() - began)

    def close(self) -> None:
        """Close the connection."""
        self.line.close()

    def _run(self, statement: str, parameters: Any = ()) -> int:
        with self.line.cursor() as cursor:
            cursor.execute(statement, parameters)
            return int(cursor.rowcount)

    def _rows(self, statement: str, parameters: Any) -> Any:
        with self.line.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall()


def _microseconds() -> int:
    # Places in the ready index are microseconds of the host's clock; no decision is taken by them.
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000
