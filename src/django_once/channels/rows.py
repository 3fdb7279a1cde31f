"""Rows of a model out of what a trigger wrote: instances that are equal to what the ORM would load.

A trigger writes the columns as the database has them. Here each becomes what the database's driver
would have handed out, and goes the way of any column from there: through the converters of the
connection and of the field. So a field's own class has its say, as in a query.

Columns that the model does not have are passed over: they were removed since. Fields without a
column in the notification are newer than it, and have their default. What stands in a parent's
table is loaded when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.apps import apps
from django.db import connections, models, router
from django.db.models.expressions import Col
from django.utils.dateparse import parse_duration

from django_once.definitions.channel import BaseChannel, name_of
from django_once.errors import InvalidOption, shortened
from django_once.sql.triggers.postgresql import read_as

Turned = Callable[[Any], Any]


class Exact(float):
    """A number with a fraction, which knows how it was written."""

    text: str

    def __new__(cls, text: str) -> Exact:
        made = super().__new__(cls, text)
        made.text = text
        return made


_decoder: Final = json.JSONDecoder(parse_float=Exact)


def model_of(channel: Any) -> Any:
    """Return the model of a channel; refuse what is none, or has no table."""
    model, name = channel.model, name_of(channel)
    if isinstance(model, str):
        try:
            model = apps.get_model(model)
        except (LookupError, ValueError) as error:
            raise InvalidOption(
                f"Channel {name} names the model {channel.model!r}, which is not there: {error}"
            ) from None
    if not isinstance(model, type) or not issubclass(model, models.Model):
        raise InvalidOption(f"Channel {name} must name a model, got model = {shortened(model)}.")
    if model._meta.abstract:
        raise InvalidOption(
            f"Channel {name} names {model.__name__}, which is abstract and has no table: name the "
            "models made of it."
        )
    return model._meta.concrete_model


def database_of(channel: type[BaseChannel]) -> str:
    """Return the database in which a channel's model is written."""
    return str(router.db_for_write(model_of(channel)))


def instance(model: Any, text: str, database: str) -> Any:
    """Return the row that a trigger wrote down as an instance of its model."""
    columns = _decoder.decode(text)
    names, readers = _plan(model, database, tuple(columns))
    return model.from_db(database, names, [read(columns) for read in readers])


@lru_cache(maxsize=1024)
def _plan(
    model: Any, database: str, written: tuple[str, ...]
) -> tuple[list[str], list[Callable[[dict[str, Any]], Any]]]:
    """Return the fields that are known from these columns, and what reads each of them."""
    connection = connections[database]
    known: dict[str, Callable[[dict[str, Any]], Any]] = {}
    for field in model._meta.local_concrete_fields:
        if field.column in written:
            known[field.attname] = _reading(field.column, _reader(field, connection))
        else:
            known[field.attname] = _ignoring(field.get_default)
    for name, link in _links(model):
        known.setdefault(name, known[link])
    names = [field.attname for field in model._meta.concrete_fields if field.attname in known]
    return names, [known[name] for name in names]


def _reading(column: str, read: Turned) -> Callable[[dict[str, Any]], Any]:
    return lambda columns: read(columns[column])


def _ignoring(default: Callable[[], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda _: default()


def _links(model: Any) -> list[tuple[str, str]]:
    """Return the keys of parents, and the field of the child's own table that holds them."""
    found: list[tuple[str, str]] = []
    pending = [(parent, link) for parent, link in model._meta.parents.items() if link is not None]
    while pending:
        parent, link = pending.pop()
        own = link if link.model is model else model._meta.pk
        found.append((parent._meta.pk.attname, own.attname))
        pending += [(elder, on) for elder, on in parent._meta.parents.items() if on is not None]
    return found


def _reader(field: Any, connection: Any) -> Turned:
    """Return what turns a column, as a trigger wrote it, into a field's value."""
    native = _native(field, connection)
    expression: Any = Col(field.model._meta.db_table, field)
    converters = [
        *connection.ops.get_db_converters(expression),
        *expression.get_db_converters(connection),
    ]

    def read(value: Any) -> Any:
        value = None if value is None else native(value)
        for convert in converters:
            value = convert(value, expression, connection)
        return value

    if native is _same and not converters:
        return _same
    return read


def _native(field: Any, connection: Any) -> Turned:
    """Return what turns a column, as a trigger wrote it, into what the driver would hand out."""
    while getattr(field, "remote_field", None) and hasattr(field, "target_field"):
        field = field.target_field
    while hasattr(field, "output_field") and field.output_field is not field:
        field = field.output_field
    base = getattr(field, "base_field", None)
    if base is not None and connection.vendor == "postgresql" and hasattr(field, "size"):
        return _list_of(_native(base, connection))
    kind = field.get_internal_type()
    kinds = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "sqlite": _SQLITE}[connection.vendor]
    if kind in kinds:
        return kinds[kind](connection)
    if kind in _INTEGERS:
        return int
    if kind in TEXTS:
        return _same
    return _asked(field, connection) if connection.vendor == "postgresql" else _plain


def _asked(field: Any, connection: Any) -> Turned:
    """Return what lets the database itself read a column of a type that only it knows."""
    kind = field.db_type(connection)
    if not kind or kind.startswith(("varchar", "text", "char", "citext", "hstore", "tsvector")):
        return _plain

    def turn(value: Any) -> Any:
        if not isinstance(value, str):
            return _plain(value)
        return read_as(connection, kind, value)

    return turn


def _list_of(inside: Turned) -> Turned:
    def turn(value: Any) -> Any:
        if isinstance(value, list):
            return [turn(member) for member in value]
        return None if value is None else inside(value)

    return turn


_INTEGERS: Final = frozenset({
    "AutoField", "BigAutoField", "SmallAutoField", "IntegerField", "BigIntegerField",
    "SmallIntegerField", "PositiveIntegerField", "PositiveBigIntegerField",
    "PositiveSmallIntegerField",
})  # fmt: skip


TEXTS: Final = frozenset({
    "CharField", "TextField", "SlugField", "URLField", "EmailField", "FileField", "FilePathField",
    "GenericIPAddressField", "IPAddressField",
})  # fmt: skip


def _same(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Exact) else value


def _decimal(value: Any) -> Decimal:
    return Decimal(value.text if isinstance(value, Exact) else str(value))


def _json(value: Any) -> str:
    """Return the JSON text that the driver would hand out."""
    return json.dumps(value, ensure_ascii=False)


def _bytes(value: str) -> bytes:
    return bytes.fromhex(value.removeprefix("\\x"))


def _aware(connection: Any) -> Turned:
    def turn(value: str) -> datetime:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return moment
        moment = moment.astimezone(connection.timezone or ZoneInfo(connection.timezone_name))
        return moment if connection.timezone is not None else moment.replace(tzinfo=None)

    return turn


_ALIKE: Final = {
    "FloatField": lambda _: float,
    "BooleanField": lambda _: bool,
    "NullBooleanField": lambda _: bool,
}
_POSTGRESQL: Final[dict[str, Callable[[Any], Turned]]] = {
    **_ALIKE,
    "DecimalField": lambda _: _decimal,
    "DateTimeField": _aware,
    "DateField": lambda _: date.fromisoformat,
    "TimeField": lambda _: time.fromisoformat,
    "DurationField": lambda _: parse_duration,
    "UUIDField": lambda _: UUID,
    "BinaryField": lambda _: _bytes,
    "JSONField": lambda _: _json,
}
# These two hand out what their columns hold, in fewer types; triggers write it as text.
_MYSQL: Final[dict[str, Callable[[Any], Turned]]] = {
    "FloatField": lambda _: float,
    "BooleanField": lambda _: lambda value: int(value),
    "DecimalField": lambda _: _decimal,
    "DateTimeField": lambda _: datetime.fromisoformat,
    "DateField": lambda _: date.fromisoformat,
    "TimeField": lambda _: time.fromisoformat,
    "DurationField": lambda _: int,
    "BinaryField": lambda _: _bytes,
    "UUIDField": lambda _: str,
    "JSONField": lambda _: lambda value: value,
}
_SQLITE: Final[dict[str, Callable[[Any], Turned]]] = {
    "FloatField": lambda _: float,
    "BooleanField": lambda _: lambda value: int(value),
    "DecimalField": lambda _: lambda value: _number(value),
    "DateTimeField": lambda _: str,
    "DateField": lambda _: str,
    "TimeField": lambda _: str,
    "DurationField": lambda _: int,
    "BinaryField": lambda _: _bytes,
    "UUIDField": lambda _: str,
    "JSONField": lambda _: lambda value: value,
}


def _number(value: Any) -> Any:
    """Return a number as SQLite hands it out: whole, or with a fraction."""
    return int(value) if isinstance(value, int) else float(value)
