"""Column types that Django has no exact word for: UTC moments, names, indexes on some rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import models

from django_once import clock


class Moment(models.DateTimeField):  # type: ignore[type-arg]
    """An instant, stored in UTC and read as aware UTC, whatever USE_TZ and TIME_ZONE say.

    Statements write the database's own now, which is UTC; Django would read it back as local
    time where a connection has another zone.
    """

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if not isinstance(value, datetime):
            return super().get_db_prep_value(value, connection, prepared)
        return clock.to_column(value, connection.vendor)

    def get_prep_value(self, value: Any) -> Any:
        # Django warns of a moment without a zone; clock.to_column gives it the project's.
        return self.to_python(value) if isinstance(value, str) else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> datetime | None:
        if value is None:
            return None
        if connection.vendor == "postgresql":
            zone = value.tzinfo or ZoneInfo(connection.timezone_name)
            return value.replace(tzinfo=zone).astimezone(UTC)  # type: ignore[no-any-return]
        return value.replace(tzinfo=UTC)  # type: ignore[no-any-return]


class Name(models.CharField):  # type: ignore[type-arg]
    """A short text that names something, compared byte by byte on every database.

    So "Mail" and "mail" are two queues everywhere, and Python sorts names as the database does.
    """

    def db_parameters(self, connection: Any) -> Any:
        """Return the column's type with the collation of this vendor."""
        return {**super().db_parameters(connection), "collation": _bytewise(connection)}


def _bytewise(connection: Any) -> str | None:
    if connection.vendor == "postgresql":
        return "C"
    if connection.vendor == "mysql":
        # Not utf8mb4_bin, which pads: it takes "mail" and "mail " for one name.
        return "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"
    return None


class PartialIndex(models.Index):
    """An index on the rows that meet a condition; MySQL, which has none, indexes all of them.

    `fields` serve databases with partial indexes; `whole` is what leads there in place of the
    condition. The condition is SQL that all of them read alike.
    """

    def __init__(
        self, *, fields: Any = (), name: str | None = None, where: str, whole: Any,
        unique: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(fields=tuple(fields), name=name)
        self.where = where
        self.whole = tuple(whole)
        self.unique = unique

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        """Return CREATE INDEX for this database."""
        quote = schema_editor.quote_name
        is_partial = schema_editor.connection.features.supports_partial_indexes
        names = [name for name, _ in self.fields_orders] if is_partial else self.whole
        columns = ", ".join(quote(model._meta.get_field(name).column) for name in names)
        where = f" WHERE {self.where}" if is_partial else ""
        kind = "UNIQUE INDEX" if self.unique else "INDEX"
        return (
            f"CREATE {kind} {quote(self.name)} ON {quote(model._meta.db_table)} ({columns}){where}"
        )

    def deconstruct(self) -> Any:
        """Return what a migration writes down."""
        path, args, kwargs = super().deconstruct()
        return (
            path,
            args,
            {
                **kwargs,
                "where": self.where,
                "whole": self.whole,
                **({"unique": True} if self.unique else {}),
            },
        )

    def __repr__(self) -> str:
        return f"<PartialIndex: {self.name} where {self.where}>"


class RandomUUID(models.Func):
    """An id drawn by the database, for rows that triggers and SQL insert."""

    template = "%(expression)s"
    output_field = models.UUIDField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        """Return the expression of this vendor."""
        if connection.vendor == "postgresql":
            return "gen_random_uuid()", []
        if connection.vendor == "sqlite":
            return "lower(hex(randomblob(16)))", []
        native = connection.features.has_native_uuid_field
        return ("uuid()" if native else "replace(uuid(), '-', '')"), []
