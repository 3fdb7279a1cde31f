"""Adding to figures: many in one statement, each made when it is first added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_once.sql.statements import Statements

# SQLite takes so many parameters at least.
AT_ONCE = 100


def add(statements: Statements, rows: Sequence[tuple[str, str, str, str, str, int]]) -> None:
    """Add to the figures of (backend, name, task, queue, outcome), in an order that all keep."""
    ordered = sorted(rows)
    for begin in range(0, len(ordered), AT_ONCE):
        _add(statements, ordered[begin : begin + AT_ONCE])


def _add(statements: Statements, rows: Sequence[tuple[Any, ...]]) -> None:
    if statements.vendor == "mysql":
        at_conflict = "ON DUPLICATE KEY UPDATE value = value + VALUES(value)"
    else:
        at_conflict = (
            "ON CONFLICT (backend, name, task, queue, outcome) "
            "DO UPDATE SET value = once_figure.value + excluded.value"
        )
    places = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(rows))
    statements.count(
        "INSERT INTO once_figure (backend, name, task, queue, outcome, value) "
        f"VALUES {places} {at_conflict}",
        [value for row in rows for value in row],
    )
