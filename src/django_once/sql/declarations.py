"""The statement that writes down what tasks say of themselves, for SQL that enqueues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_once.sql.statements import Statements
from django_once.sql.words import write_json

COLUMNS: Final = {"task": "text", "said": "text"}


def write(statements: Statements, backend: str, said: Sequence[tuple[str, str]]) -> int:
    """Write down what each of these tasks says; count those that have said something else."""
    # In one order, so that two that start at once never wait crosswise.
    batch = [{"task": task, "said": text} for task, text in sorted(said)]
    sql = (
        "INSERT INTO once_declaration (backend, task, said) "
        f"SELECT %s, o.task, o.said FROM {statements.unpacked(COLUMNS)} "
        "ON CONFLICT (task, backend) DO UPDATE "
        f"SET said = excluded.said, declared_at = {statements.now} "
        "WHERE once_declaration.said <> excluded.said"
    )
    return statements.count(sql, [backend, write_json(batch)])
