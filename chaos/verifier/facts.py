"""The facts of a run: rows, history, ledger and logs, as plain values whatever the database."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

READY, RUNNING, SUCCESSFUL, FAILED = "READY", "RUNNING", "SUCCESSFUL", "FAILED"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its row stands at the end."""

    id: str
    kind: str
    status: str
    reason: str
    delivery: str
    attempt: int
    fence: int
    history: tuple[dict[str, Any], ...]
    key: str | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a job's status, claim or fence; `was` is None at its birth."""

    number: int
    job: str
    was: str | None
    became: str
    claim_was: str | None
    claim: str | None
    fence_was: int | None
    fence: int
    attempt_was: int | None
    attempt: int
    worker_was: str | None
    worker: str | None
    is_orphan: bool
    writer: int | None
    at: float


@dataclass(frozen=True, slots=True)
class Order:
    """What was fed, with the id of the job that was stored beside it."""

    number: int
    kind: str
    job: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What a body wrote through the database of its job."""

    number: int
    job: str
    fence: int


@dataclass(frozen=True, slots=True)
class Start:
    """A body that was called."""

    id: str
    job: str
    attempt: int
    fence: int
    pid: int


@dataclass(frozen=True, slots=True)
class Write:
    """A write that reached the resource under a lock, and what it made of it."""

    name: str
    fence: int
    job: str
    was_accepted: bool


@dataclass(frozen=True, slots=True)
class Series:
    """A succession of jobs as it stands at the end."""

    key: str
    generation: int
    job: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """What a schedule recorded for a due moment, or for all from one to another that it skipped."""

    due_at: float
    through: float | None
    status: str
    reason: str
    job: str | None


@dataclass
class Facts:
    """All that was written down of a run."""

    jobs: dict[str, Job] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    workers: dict[str, int] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    logged: dict[str, int] = field(default_factory=dict)
    cuts: list[dict[str, Any]] = field(default_factory=list)
    done: Any = None

    @classmethod
    def read(
        cls, line: Any, *, ledger: Path, logs: list[Path], cuts: list[dict[str, Any]], done: Any
    ) -> Facts:
        """Return the facts: rows through this connection, and the files."""
        facts = cls(cuts=[one for one in cuts if one.get("did") == "cut"], done=done)
        facts._read_rows(line.cursor())
        facts._read_ledger(ledger.read_text() if ledger.exists() else "")
        facts._read_logs(logs)
        return facts

    def _read_rows(self, cursor: Any) -> None:
        # Its name is a word of SQL's.
        key = "`key`" if type(cursor).__module__.startswith("pymysql") else '"key"'
        cursor.execute(
            "SELECT id, task, status, reason, delivery, attempt, fence, history, "
            f"{key}, generation FROM once_job"
        )
        for id, task, status, reason, delivery, attempt, fence, history, *turn in cursor.fetchall():
            job = Job(
                name_of(id), task.rpartition(".")[2], status, reason, delivery, attempt, fence,
                tuple(json.loads(history)), *turn,
            )  # fmt: skip
            self.jobs[job.id] = job
        cursor.execute(f"SELECT {key}, generation, job FROM once_series")
        self.series = [
            Series(name, turn, name_or_none(job)) for name, turn, job in cursor.fetchall()
        ]
        cursor.execute("SELECT due_at, through, status, reason, job FROM once_execution")
        for due_at, through, status, reason, executed in cursor.fetchall():
            until = None if through is None else seconds_of(through)
            self.moments.append(
                Moment(seconds_of(due_at), until, status, reason, name_or_none(executed))
            )
        cursor.execute(
            "SELECT number, job, was, became, claim_was, claim, fence_was, fence, attempt_was, "
            "attempt, worker_was, worker, is_orphan, writer, at FROM chaos_history ORDER BY number"
        )
        self.changes = [change_of(row) for row in cursor.fetchall()]
        cursor.execute("SELECT number, kind, job FROM chaos_order")
        self.orders = [Order(number, kind, name_of(job)) for number, kind, job in cursor.fetchall()]
        cursor.execute("SELECT number, job, fence FROM chaos_effect")
        self.effects = [Effect(number, name_of(job), fence) for number, job, fence in cursor]
        cursor.execute("SELECT id, pid FROM once_worker")
        self.workers = {name_of(id): pid for id, pid in cursor.fetchall()}

    def _read_ledger(self, text: str) -> None:
        seen = set()
        for line in map(json.loads, text.splitlines()):
            # A line that was written twice has one id, and counts once.
            if line["id"] in seen:
                continue
            seen.add(line["id"])
            if line["what"] == "start":
                self.starts.append(
                    Start(
                        line["id"],
                        name_of(line["job"]),
                        line["attempt"],
                        line["fence"],
                        line["pid"],
                    )
                )
            elif line["what"] == "undone":
                self.undone += map(name_of, line["jobs"])
            else:
                accepted = line["what"] == "accepted"
                self.writes.append(
                    Write(line["name"], line["fence"], name_of(line["job"]), accepted)
                )

    def _read_logs(self, logs: list[Path]) -> None:
        text = "\n".join(log.read_text(errors="replace") for log in logs)
        for name, pattern in LOGGED.items():
            self.logged[name] = len(re.findall(pattern, text))


# What the logs of the workers tell of guards that had something to do.
LOGGED = {
    "refused": r"attempt\.superseded",
    "settles without an answer": r"settler: database '\w+' does not answer",
    "commits without an answer": r"commit of [0-9a-f-]+: database '\w+' does not answer",
    "workers lost": r"worker\.lost",
    "workers expired": r"worker\.expired",
    "workers relieved": r"worker\.relieved",
    "tracebacks": r"Traceback \(most recent call last\)",
}


def change_of(row: Any) -> Change:
    """Return a row of the history."""
    number, job, was, became, claim_was, claim, fence_was, fence = row[:8]
    attempt_was, attempt, worker_was, worker, is_orphan, writer, at = row[8:]
    return Change(
        number, name_of(job), was, became, name_or_none(claim_was), name_or_none(claim), fence_was,
        fence, attempt_was, attempt, name_or_none(worker_was), name_or_none(worker),
        bool(is_orphan), writer, seconds_of(at),
    )  # fmt: skip


def name_of(id: Any) -> str:
    """Return an id as text, the same whatever the database keeps."""
    return str(UUID(str(id)))


def name_or_none(id: Any) -> str | None:
    """Return an id as text, where there is one."""
    return None if id is None else name_of(id)


def seconds_of(moment: Any) -> float:
    """Return a moment of the database as seconds of the wall clock."""
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
