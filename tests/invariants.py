"""The books: what must hold of every row at every moment, asked of the database in SQL.

Each is a sentence and the condition of the rows that break it. A test that leaves such a row
behind has found a transition that forgot a column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db import connections


@dataclass(frozen=True)
class Invariant:
    """A sentence about jobs, and which rows break it."""

    sentence: str
    broken: str


READY, RUNNING, SUCCESSFUL, FAILED = (
    f"status = '{status}'" for status in ("READY", "RUNNING", "SUCCESSFUL", "FAILED")
)
ENDED = "status IN ('SUCCESSFUL', 'FAILED')"

INVARIANTS = (
    Invariant(
        "There are four statuses.", "status NOT IN ('READY', 'RUNNING', 'SUCCESSFUL', 'FAILED')"
    ),
    Invariant(
        "A running job has a holder: a claim, a worker and its name.",
        f"{RUNNING} AND (claim IS NULL OR worker IS NULL OR worker_name = '')",
    ),
    Invariant(
        "A job that waits has no holder.", f"{READY} AND (worker IS NOT NULL OR worker_name <> '')"
    ),
    Invariant("A successful job says who ran it.", f"{SUCCESSFUL} AND worker_name = ''"),
    Invariant("A job that was claimed has a fence.", "claim IS NOT NULL AND fence < 1"),
    Invariant("Each attempt has a fence of its own.", "fence < attempt"),
    Invariant(
        "An attempt ends in one failure or one death at most.", "attempt < failures + deaths"
    ),
    Invariant("Nothing is counted below zero.", "attempt < 0 OR failures < 0 OR deaths < 0"),
    Invariant("A running job is in an attempt.", f"{RUNNING} AND attempt < 1"),
    Invariant("A successful job had an attempt.", f"{SUCCESSFUL} AND attempt < 1"),
    Invariant(
        "Only what is ready and unblocked gets a place, and what runs may still show it.",
        f"position IS NOT NULL AND ({ENDED} OR blocked_by <> '')",
    ),
    Invariant("Only what waits is blocked.", f"blocked_by <> '' AND NOT ({READY})"),
    Invariant("What has ended says when.", f"{ENDED} AND finished_at IS NULL"),
    Invariant("What has not ended has no end.", f"NOT ({ENDED}) AND finished_at IS NOT NULL"),
    Invariant(
        "What is successful says when it began.",
        f"{SUCCESSFUL} AND (started_at IS NULL OR last_attempted_at IS NULL)",
    ),
    Invariant(
        "The first start is not after the last.",
        "started_at IS NOT NULL AND last_attempted_at < started_at",
    ),
    Invariant(
        "What is successful has a value, and nothing else has.",
        f"(return_value IS NULL) = ({SUCCESSFUL})",
    ),
    Invariant("What failed says why.", f"{FAILED} AND (reason = '' OR history = '[]')"),
    Invariant("A success needs no reason.", f"{SUCCESSFUL} AND reason <> ''"),
    Invariant(
        "A uniqueness without a window ends with its job.",
        f"{ENDED} AND unique_hash IS NOT NULL AND unique_until IS NULL",
    ),
    Invariant(
        "A cancel that was asked for is not forgotten by coming back.",
        f"{READY} AND cancel_requested_at IS NOT NULL",
    ),
    Invariant(
        "What was cancelled says when that was asked.",
        "reason = 'cancelled' AND cancel_requested_at IS NULL",
    ),
)

HISTORY = "A history is a list of what went wrong, one entry per attempt that did not succeed."
ENTRY = {"at": str, "kind": str, "attempt": int, "worker": str, "error": str, "traceback": str}


def violations(alias: str = "default") -> list[str]:
    """Return a line for each row that breaks an invariant; empty when the books balance."""
    found = []
    with connections[alias].cursor() as cursor:
        if "once_job" not in connections[alias].introspection.table_names(cursor):
            return []
        sums = ", ".join(f"sum(CASE WHEN {one.broken} THEN 1 ELSE 0 END)" for one in INVARIANTS)
        cursor.execute(f"SELECT {sums} FROM once_job")
        for one, count in zip(INVARIANTS, cursor.fetchone(), strict=True):
            if count:
                found += broken_rows(cursor, one)
        found += broken_histories(cursor)
    return found


def broken_rows(cursor: Any, invariant: Invariant) -> list[str]:
    cursor.execute(f"SELECT * FROM once_job WHERE {invariant.broken} LIMIT 3")
    names = [column[0] for column in cursor.description]
    return [f"{invariant.sentence} {dict(zip(names, row, strict=True))}" for row in cursor]


def broken_histories(cursor: Any) -> list[str]:
    cursor.execute(
        "SELECT id, history, fence, failures, deaths FROM once_job "
        "WHERE history <> '[]' OR failures > 0 OR deaths > 0"
    )
    return [f"{HISTORY} {row}" for row in cursor.fetchall() if not is_history(*row[1:])]


def is_history(text: str, fence: int, failures: int, deaths: int) -> bool:
    """Return whether a history is whole, and has as much to say as was counted."""
    try:
        entries = json.loads(text)
    except ValueError:
        return False
    if not isinstance(entries, list) or not all(map(is_entry, entries)):
        return False
    kinds = [entry["kind"] for entry in entries]
    attempts = [entry for entry in entries if entry["worker"]]
    if [entry["at"] for entry in entries] != sorted(entry["at"] for entry in entries):
        return False
    return (
        len(attempts) <= fence
        and kinds.count("raised") + kinds.count("timed_out") >= failures
        and kinds.count("died") >= deaths
    )


def is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(name), kind) for name, kind in ENTRY.items()
    )
