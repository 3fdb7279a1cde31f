"""Sentence 4 as statements: a due moment is moved past once, and recorded once.

Whoever fires holds the rows of its schedules, moves each on by compare-and-set, and inserts one
record per due moment, or nothing where there is one. The caller counts both. If one is short,
somebody else was there, and the whole transaction is undone, with the jobs it enqueued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_once import clock
from django_once.sql.statements import Statements
from django_once.sql.words import write_json

MOVE: Final = {
    "schedule": "uuid", "words": "integer", "seen": "text", "due": "text", "fires": "text",
    "mark": "text", "ran": "integer", "left_out": "integer", "expects": "text", "trouble": "text",
}  # fmt: skip

RECORD: Final = {
    "record": "uuid", "schedule": "uuid", "moment": "text", "last": "text", "because": "text",
    "becomes": "text", "why": "text", "ours": "uuid", "lease": "real", "kept": "real",
}  # fmt: skip

# A run that has not ended: a job of ours that waits or runs, or a permit on its way.
IS_OPEN: Final = (
    "execution.status = 'PENDING' AND execution.reason IN ('', 'queued') "
    "AND (execution.job IS NULL OR job.status IN ('READY', 'RUNNING'))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A schedule whose due moments were decided: from where it stood to where it stands next."""

    schedule: UUID
    version: int
    seen: datetime | None
    next_due_at: datetime | None
    fires_at: datetime | None
    watermark: datetime | None = None
    fired: int = 0
    skipped: int = 0
    expected_by: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One due moment as it is to be recorded."""

    id: UUID
    schedule: UUID
    due_at: datetime
    through: datetime | None = None
    kind: str = "schedule"
    status: str = "PENDING"
    reason: str = ""
    job: UUID | None = None
    # Seconds until somebody else may dispatch it, for a foreign backend.
    lease: float | None = None
    retention: float | None = None


def move(statements: Statements, moves: Sequence[Move]) -> int:
    """Move these schedules on, each from where it was seen; return how many still stood there."""
    if not moves:
        return 0
    is_mysql = statements.vendor == "mysql"
    same = {"postgresql": "IS NOT DISTINCT FROM", "sqlite": "IS", "mysql": "<=>"}[statements.vendor]
    mark = _moment(statements, "o.mark")
    expects = _moment(statements, "o.expects")
    changes = f"""
        next_due_at = {_moment(statements, "o.due")},
        fires_at = {_moment(statements, "o.fires")},
        watermark = CASE WHEN {mark} IS NULL OR schedule.watermark >= {mark}
            THEN schedule.watermark ELSE {mark} END,
        fired = schedule.fired + o.ran, skipped = schedule.skipped + o.left_out,
        last_fired_at = CASE WHEN o.ran > 0 THEN {statements.now} ELSE schedule.last_fired_at END,
        expected_by = coalesce(schedule.expected_by, {expects}),
        problem = o.trouble"""
    guard = (
        "schedule.id = o.schedule AND schedule.version = o.words AND schedule.enabled "
        f"AND schedule.next_due_at {same} {_moment(statements, 'o.seen')}"
    )
    batch = write_json([_move_member(statements, one) for one in moves])
    source = statements.unpacked(MOVE)
    if is_mysql:
        # By key: a walk of a small table would wait for rows that other schedulers hold.
        schedule = "once_schedule AS schedule FORCE INDEX (PRIMARY)"
        sql = f"UPDATE {source} STRAIGHT_JOIN {schedule} ON {guard} SET {changes}"
    else:
        sql = f"UPDATE once_schedule AS schedule SET {changes} FROM {source} WHERE {guard}"
    return statements.count(sql, [batch])


def record(statements: Statements, records: Sequence[Record]) -> int:
    """Record these due moments, those that are not recorded yet; return how many were not."""
    if not records:
        return 0
    is_pending = "o.becomes = 'PENDING'"
    ended = f"CASE WHEN {is_pending} THEN NULL ELSE {statements.now} END"
    kept = (
        f"CASE WHEN {is_pending} OR o.kept IS NULL THEN NULL ELSE {statements.later('o.kept')} END"
    )
    leased = f"CASE WHEN o.lease IS NULL THEN NULL ELSE {statements.later('o.lease')} END"
    conflict = (
        "ON DUPLICATE KEY UPDATE once_execution.id = once_execution.id"
        if statements.vendor == "mysql"
        else "ON CONFLICT DO NOTHING"
    )
    sql = f"""
        INSERT INTO once_execution (id, schedule_id, due_at, through, kind, status, reason, job,
            created_at, leased_until, completed_at, retention, kept_until)
        SELECT o.record, o.schedule, {_moment(statements, "o.moment")},
            {_moment(statements, "o.last")}, o.because, o.becomes, o.why, o.ours,
            {statements.now}, {leased}, {ended}, o.kept, {kept}
        FROM {statements.unpacked(RECORD)} WHERE 1 = 1 {conflict}"""
    batch = write_json([_record_member(statements, one) for one in records])
    if statements.vendor != "mysql":
        return statements.count(sql, [batch])
    # A row that was there counts as well here: asked what is there under these ids.
    statements.count(sql, [batch])
    ids = [statements.key(one.id) for one in records]
    found = f"SELECT count(*) FROM once_execution WHERE id IN ({statements.marks(ids)})"
    ((count,),) = statements.rows(found, ids)
    return int(count)


def open_runs(statements: Statements, schedules: Sequence[UUID]) -> dict[UUID, int]:
    """Return how many runs of these schedules have not ended; those without are left out."""
    if not schedules:
        return {}
    sql = (
        "SELECT execution.schedule_id, count(*) FROM once_execution AS execution "
        "LEFT JOIN once_job AS job ON job.id = execution.job "
        f"WHERE execution.schedule_id IN ({statements.marks(schedules)}) AND {IS_OPEN} "
        "GROUP BY execution.schedule_id"
    )
    rows = statements.rows(sql, [statements.key(one) for one in schedules])
    return {UUID(str(schedule)): int(count) for schedule, count in rows}


def ended(
    statements: Statements, most: int
) -> list[tuple[UUID, UUID | None, str, datetime | None]]:
    """Return up to so many pending records whose jobs have ended: record, schedule, status, end.

    A job that was deleted has ended too.
    """
    sql = (
        "SELECT execution.id, execution.schedule_id, job.status, job.finished_at "
        "FROM once_execution AS execution LEFT JOIN once_job AS job ON job.id = execution.job "
        "WHERE execution.status = 'PENDING' AND execution.job IS NOT NULL "
        "AND (job.id IS NULL OR job.status IN ('SUCCESSFUL', 'FAILED')) LIMIT %s"
    )
    return [
        (
            UUID(str(one)),
            UUID(str(schedule)) if schedule is not None else None,
            status or "",
            statements.moment(finished_at) if finished_at is not None else None,
        )
        for one, schedule, status, finished_at in statements.rows(sql, [most])
    ]


def next_in_turn(statements: Statements, most: int) -> list[UUID]:
    """Return up to so many schedules of which a run waits in a queue and no other is open."""
    sql = (
        "SELECT DISTINCT waiting.schedule_id FROM once_execution AS waiting "
        "WHERE waiting.status = 'PENDING' AND waiting.reason = 'queued' "
        "AND waiting.schedule_id IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM once_execution AS execution "
        "LEFT JOIN once_job AS job ON job.id = execution.job "
        "WHERE execution.schedule_id = waiting.schedule_id AND execution.reason = '' "
        f"AND {IS_OPEN}) LIMIT %s"
    )
    return [UUID(str(schedule)) for (schedule,) in statements.rows(sql, [most])]


def _moment(statements: Statements, column: str) -> str:
    """SQL for a batch's column, which holds a moment as text."""
    if statements.vendor == "postgresql":
        return f"{column}::timestamptz"
    return column if statements.vendor == "sqlite" else f"CAST({column} AS datetime(6))"


def _text(statements: Statements, moment: datetime | None) -> str | None:
    if moment is None:
        return None
    column = clock.to_column(moment, statements.vendor)
    return column if isinstance(column, str) else column.isoformat(sep=" ", timespec="microseconds")


def _move_member(statements: Statements, one: Move) -> dict[str, Any]:
    return _said(
        {
            "schedule": str(statements.key(one.schedule)), "words": one.version,
            "seen": _text(statements, one.seen), "due": _text(statements, one.next_due_at),
            "fires": _text(statements, one.fires_at), "mark": _text(statements, one.watermark),
            "ran": one.fired, "left_out": one.skipped,
            "expects": _text(statements, one.expected_by), "trouble": one.problem,
        }
    )  # fmt: skip


def _record_member(statements: Statements, one: Record) -> dict[str, Any]:
    return _said(
        {
            "record": str(statements.key(one.id)), "schedule": str(statements.key(one.schedule)),
            "moment": _text(statements, one.due_at), "last": _text(statements, one.through),
            "because": one.kind, "becomes": one.status, "why": one.reason,
            "ours": str(statements.key(one.job)) if one.job is not None else None,
            "lease": one.lease, "kept": one.retention,
        }
    )  # fmt: skip


def _said(member: dict[str, Any]) -> dict[str, Any]:
    # A member that is left out is NULL on every database; a JSON null is not.
    return {name: value for name, value in member.items() if value is not None}
