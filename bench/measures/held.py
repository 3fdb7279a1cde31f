"""The table after a while: under a snapshot that holds every dead row, and under retention."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import connection

from bench import table
from bench.crew import crew
from bench.figures import Figure, Gate
from bench.session import Session

READY = 60_000
TASK = table.TASKS + "nothing"
FILL = """
    INSERT INTO once_job (args, task, position) SELECT '[0]', %s,
    (extract(epoch from statement_timestamp()) * 1000000)::bigint + n
    FROM generate_series(1, %s::bigint) AS n"""


class Feeder(threading.Thread):
    """Keeps about so many jobs ready: the server's own counters say how many were ended.

    It never counts rows, which would walk the very index that is under measurement.
    """

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.line: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
        self.is_over = threading.Event()
        self.stored = 0

    def run(self) -> None:
        """Feed until it is over."""
        while not self.is_over.wait(0.25):
            self.feed()
        self.line.close()

    def feed(self) -> None:
        """Bring the ready jobs back to what they should be."""
        missing = READY - (self.stored - self.ended)
        if missing > READY // 6:
            self.line.execute(FILL, [TASK, missing])
            self.stored += missing

    @property
    def ended(self) -> int:
        """How many jobs were claimed and ended, as far as the server has been told."""
        row = self.line.execute(
            "SELECT n_tup_upd / 2 FROM pg_stat_user_tables WHERE relname = 'once_job'"
        ).fetchone()
        assert row is not None
        return int(row[0])


def snapshot(session: Session) -> Iterator[Figure]:
    """Yield what is left of the speed after a minute of load with a snapshot held open."""
    seconds = session.scale.held
    window = max(2.0, seconds / 6)
    for held in (False, True):
        windows = _under_load(session, seconds, window, held=held)
        name = "a snapshot held open" if held else "no snapshot held"
        gates = (Gate("ratio", least=0.7),) if held else ()
        yield Figure(
            "held", f"{seconds:.0f} s of load, {name}", windows[-1], "jobs/s", windows[0],
            f"its first {window:.0f} s", windows[-1] / windows[0], gates,
            " → ".join(f"{each:,.0f}" for each in windows),
        )  # fmt: skip


def _under_load(session: Session, seconds: float, window: float, *, held: bool) -> list[float]:
    """Return how many jobs per second ended in each window."""
    table.empty()
    table.one("SELECT pg_stat_reset_single_table_counters('once_job'::regclass)")
    address = _address()
    feeder = Feeder(address)
    feeder.feed()
    holder: psycopg.Connection[Any] = psycopg.connect(address)
    if held:
        # The snapshot of a long report: every row that dies from here on stays.
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM once_worker")
    try:
        with crew():
            time.sleep(1.0)
            feeder.start()
            ((began,),) = table.rows("SELECT clock_timestamp()")
            time.sleep(seconds)
            feeder.is_over.set()
            feeder.join()
    finally:
        holder.close()
    counts = dict(
        table.rows(
            "SELECT floor(extract(epoch from finished_at - %s) / %s)::int AS part, count(*) "
            "FROM once_job WHERE finished_at >= %s GROUP BY part",
            [began, window, began],
        )
    )
    return [counts.get(n, 0) / window for n in range(int(seconds / window))]


def growth(session: Session) -> Iterator[Figure]:
    """Yield whether table and indexes stop growing: half an hour at 2,000 jobs a second."""
    rate, retention, minutes = 2_000, 60, 30
    table.empty()
    sizes: list[int] = []
    with crew(), psycopg.connect(_address(), autocommit=True) as line:
        for second in range(minutes * 60):
            began = time.monotonic()
            line.execute(FILL, [TASK, rate])
            line.execute(
                "DELETE FROM once_job WHERE id IN (SELECT id FROM once_job WHERE finished_at < "
                f"statement_timestamp() - interval '{retention} s' LIMIT {4 * rate})"
            )
            if second % 60 == 59:
                sizes.append(table.one("SELECT pg_total_relation_size('once_job')"))
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
    third = len(sizes) // 3
    middle, end = max(sizes[third : 2 * third]), max(sizes[2 * third :])
    yield Figure(
        "growth", f"{minutes} min at {rate:,}/s, {retention} s kept", end / 1e6, "MB",
        middle / 1e6, "its middle third", end / middle, (Gate("ratio", most=1.1),),
        " → ".join(f"{size / 1e6:.0f}" for size in sizes[::5]),
    )  # fmt: skip


def _address() -> str:
    said = connection.get_connection_params()
    parts = {name: said.get(name) for name in ("dbname", "user", "password", "host", "port")}
    return psycopg.conninfo.make_conninfo(**{k: v for k, v in parts.items() if v})
