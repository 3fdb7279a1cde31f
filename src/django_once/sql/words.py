"""The few words that each database says its own way; the statements are written with them.

They share a common part large enough for one text per statement: row values, common table
expressions, JSON that unpacks into rows. What remains is here: how to say now, later, a batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction

from django_once import clock

write_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Words:
    """What a statement of one connection is made of."""

    vendor: ClassVar[str]
    # Ends a SELECT that locks what it finds, and passes over what others have locked.
    LOCK_FREE: ClassVar[str] = "FOR UPDATE SKIP LOCKED"

    # Begins a DELETE of jobs by their ids, which touches no other row.
    DELETE_BY_KEY: ClassVar[str] = "DELETE FROM once_job"

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @property
    def now(self) -> str:
        """The database's now as SQL, ready to stand in a statement with parameters."""
        return clock.now_sql(self.vendor).replace("%", "%%")

    def stamp(self) -> str:
        """SQL for now as the text that stands in a history."""
        raise NotImplementedError

    def later(self, seconds: str) -> str:
        """SQL for so many seconds from now."""
        raise NotImplementedError

    def after(self, moment: str, seconds: str) -> str:
        """SQL for so many seconds after a moment."""
        raise NotImplementedError

    def position(self, ordinal: str = "0", places: int = 1) -> str:
        """SQL for a new place at the end of the ready index; `ordinal` orders a batch of places."""
        raise NotImplementedError

    def unpacked(self, columns: Mapping[str, str]) -> str:
        """SQL for one JSON parameter, a list of objects, as the rows of a table `o`."""
        raise NotImplementedError

    def batch(
        self, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]
    ) -> tuple[str, list[Any]]:
        """SQL for rows of values as a table `o` of these columns, and its parameters."""
        members = [
            {
                name: str(self.key(value)) if isinstance(value, UUID) else value
                for name, value in zip(columns, row, strict=True)
            }
            for row in rows
        ]
        return self.unpacked(columns), [write_json(members)]

    def joined(self, *parts: str) -> str:
        """SQL for texts put together."""
        return "(" + " || ".join(parts) + ")"

    def length(self, text: str) -> str:
        """SQL for the number of characters of a text."""
        return f"length({text})"

    def as_moment(self, parameter: str) -> str:
        """SQL for a parameter that is a moment."""
        return parameter

    def with_entry(self, entry: str) -> str:
        """SQL of a job's history with one more member, whose text lacks its opening brace."""
        member = self.joined('\'{"at":"\'', self.stamp(), "'\",'", entry, "']'")
        kept = f"substr(job.history, 1, {self.length('job.history')} - 1)"
        comma = "CASE WHEN job.history = '[]' THEN '' ELSE ',' END"
        return self.joined(kept, comma, member)

    def marks(self, values: Sequence[Any]) -> str:
        """SQL for as many parameters as there are values."""
        return ", ".join(["%s"] * len(values))

    def key(self, value: UUID) -> Any:
        """Return an id as this database's parameter."""
        return value if self.connection.features.has_native_uuid_field else value.hex

    def moment(self, value: Any) -> datetime:
        """Return a column's moment as aware UTC."""
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        assert isinstance(found, datetime)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
        if self.vendor == "postgresql":
            # With USE_TZ=False psycopg hands out the session's local time.
            return found.replace(tzinfo=ZoneInfo(self.connection.timezone_name)).astimezone(UTC)
        return found.replace(tzinfo=UTC)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run one statement and return its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return list(cursor.fetchall())

    def rows_by_index(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        """Run one statement of the engine's own, whose plan no statistics may decide."""
        return self.rows(sql, parameters)

    def count(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement and return how many rows it changed."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return int(cursor.rowcount)

    def together(self) -> AbstractContextManager[None]:
        """Several statements as one transaction, or as part of the caller's."""
        return transaction.atomic(using=self.connection.alias, savepoint=False)

    def see_what_commits(self) -> None:
        """Let a transaction that has just begun see what others commit while it lasts."""

    def planned(self) -> AbstractContextManager[None]:
        """Do what `together` does, under plans that no statistics decide."""
        return self.together()
