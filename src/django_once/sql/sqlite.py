"""The statements on SQLite: one writer at a time, so each statement is alone.

`FOR UPDATE` does not exist and is not needed: an UPDATE with its guard takes the write lock,
and who comes later sees what it left. Places in the ready index are drawn from the host's clock,
since all processes are on one host and SQL's own clock counts milliseconds, too coarse to keep
the order of two enqueues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django_once import clock, identity
from django_once.sql.predicates import CLAIMABLE, TAKING, WORKER_LIVES
from django_once.sql.statements import Statements
from django_once.sql.values import Attempt, Holder, Lane, Placed

CASTS: Final = {"uuid": "text", "text": "text", "integer": "integer", "real": "real"}


class SQLite(Statements):
    """The statements of a connection to SQLite 3.35 or later."""

    vendor = "sqlite"
    LOCK_FREE = ""

    def stamp(self) -> str:
        moved = clock.offset().total_seconds()
        by = f", '{moved:+.6f} seconds'" if moved else ""
        return f"strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now'{by})"

    def later(self, seconds: str) -> str:
        moved = clock.offset().total_seconds()
        by = f", '{moved:+.6f} seconds'" if moved else ""
        return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now'{by}, ({seconds}) || ' seconds')"

    def after(self, moment: str, seconds: str) -> str:
        return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', {moment}, ({seconds}) || ' seconds')"

    def position(self, ordinal: str = "0", places: int = 1) -> str:
        return f"({identity.position(places)} + {ordinal})"

    def unpacked(self, columns: Mapping[str, str]) -> str:
        members = ", ".join(
            f"CAST(json_extract(value, '$.{name}') AS {CASTS[kind]}) AS {name}"
            for name, kind in columns.items()
        )
        return f"(SELECT {members} FROM json_each(%s)) AS o"

    def claim(
        self, holder: Holder, nonce: UUID, lanes: Sequence[tuple[Lane, int]], most: int
    ) -> list[Attempt]:
        sql = f"""
            UPDATE once_job AS job SET {TAKING}
            WHERE job.id IN (
                SELECT job.id FROM once_job AS job INDEXED BY once_job_ready
                WHERE job.backend = %s AND job.queue = %s AND job.priority = %s
                AND job.position >= %s AND {CLAIMABLE} AND {self.is_open("job.queue")}
                ORDER BY job.position LIMIT %s
            ) AND {WORKER_LIVES}
            RETURNING {self.claimed_columns().replace("job.", "")}"""
        found: list[Attempt] = []
        worker = self.key(holder.id)
        with self.together():
            for lane, low in lanes:
                left = most - len(found)
                if not left:
                    break
                rows = self.rows(
                    sql,
                    [self.key(nonce), worker, holder.name, holder.backend, lane.queue,
                     lane.priority, low, holder.backend, left, worker],
                )  # fmt: skip
                found += self.attempts(rows, nonce)
        return found

    def step(self, n: int, between: str) -> str:
        return f"""
            SELECT * FROM (
                SELECT {n}, queue, priority, 1 FROM once_job INDEXED BY once_job_ready
                WHERE backend = %s AND status = 'READY' AND position IS NOT NULL{between}
                ORDER BY queue, priority LIMIT 1
            )"""

    def place(self, index: str, where: str, parameters: Sequence[Any], most: int) -> list[Placed]:
        place = self.position("waiting.n - 1", most)
        sql = f"""
            UPDATE once_job AS job SET {self.placing(place)}
            FROM (
                SELECT job.id, row_number() OVER (ORDER BY {self.order_in(index)}) AS n
                FROM once_job AS job INDEXED BY {index}
                WHERE job.status = 'READY' AND {where} ORDER BY {self.order_in(index)} LIMIT %s
            ) AS waiting
            WHERE job.id = waiting.id AND job.status = 'READY' AND job.position IS NULL
            RETURNING backend, gate"""
        return [Placed(*row) for row in self.rows(sql, [*parameters, most])]
