"""What a channel carries, to JSON and back, by the types of its fields.

A value that is not of its field's type is refused where it is told, with the field: in a listener
it would be nobody's mistake. What JSON has no word for (moments, decimals, ids, bytes, sets) goes
as text, and comes back as what it was.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from django_once.definitions.channel import BaseChannel, name_of
from django_once.errors import InvalidNotification, shortened

# How each of these types is written, and read again.
SCALARS: Final[dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    str: (str, str),
    bool: (bool, bool),
    int: (int, int),
    float: (float, float),
    Decimal: (str, Decimal),
    datetime: (datetime.isoformat, datetime.fromisoformat),
    date: (date.isoformat, date.fromisoformat),
    time: (time.isoformat, time.fromisoformat),
    timedelta: (lambda it: [it.days, it.seconds, it.microseconds], lambda it: timedelta(*it)),
    UUID: (str, UUID),
    bytes: (lambda it: base64.b64encode(it).decode(), base64.b64decode),
}
# What Python takes for one of these, and nobody means.
NEITHER: Final[dict[Any, Any]] = {int: bool, float: bool, date: datetime}
LISTS: Final = (list, tuple, set, frozenset)


class Mismatch(Exception):
    """A value that is not of the type that was declared."""


def written(channel: type[BaseChannel], values: Mapping[str, Any]) -> str:
    """Return what a channel is told, as JSON; refuse what it does not carry."""
    name = name_of(channel)
    known = {field.name: field for field in dataclasses.fields(channel)}
    for one in values:
        if one not in known:
            raise InvalidNotification(
                f"Channel {name} has no field {one!r}. It carries: {', '.join(known) or 'nothing'}."
            )
    hints = _hints(channel)
    carried: dict[str, Any] = {}
    for one, field in known.items():
        if one in values:
            value = values[one]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise InvalidNotification(f"Channel {name} was not told its field {one!r}.")
        try:
            is_default = value is None and field.default is None
            carried[one] = None if is_default else _written(value, hints[one])
        except (Mismatch, ValueError) as error:
            raise InvalidNotification(
                f"Field {one!r} of channel {name} is {_word(hints[one])}, got "
                f"{shortened(value)}{f': {error}' if str(error) else ''}."
            ) from None
    return json.dumps({"kwargs": carried}, ensure_ascii=False, separators=(",", ":"))


def read(channel: type[BaseChannel], text: str) -> dict[str, Any]:
    """Return what a channel was told, as its fields are declared now.

    A field that was taken away is left out, one that is new has its default.
    """
    carried = json.loads(text)["kwargs"]
    hints = _hints(channel)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(channel):
        if field.name in carried:
            value = carried[field.name]
            values[field.name] = None if value is None else _read(value, hints[field.name])
        elif field.default is not dataclasses.MISSING:
            values[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
        else:
            raise InvalidNotification(
                f"A notification of channel {name_of(channel)} was stored without its field "
                f"{field.name!r}: give the field a default, for those that are older than it."
            )
    return values


def _hints(channel: Any) -> dict[str, Any]:
    return _hints_of(channel)


@lru_cache(maxsize=1024)
def _hints_of(channel: Any) -> dict[str, Any]:
    try:
        return get_type_hints(channel)
    except NameError as error:
        raise InvalidNotification(
            f"Channel {name_of(channel)} has a field whose type cannot be found: {error}."
        ) from None


def _written(value: Any, kind: Any) -> Any:
    origin = get_origin(kind) or kind
    if origin is Annotated:
        return _written(value, get_args(kind)[0])
    if kind is Any or kind is object:
        return _plain(value)
    if kind is None or kind is type(None):
        return _same(value, None)
    if origin in (Union, types.UnionType):
        return _first(value, get_args(kind), _written)
    if origin is Literal:
        return _plain(value) if value in get_args(kind) else _refuse()
    if origin in LISTS:
        return _written_list(value, origin, get_args(kind))
    if origin in (dict, Mapping):
        return _written_mapping(value, get_args(kind))
    if isinstance(origin, type) and issubclass(origin, Enum):
        return _plain(value.value) if isinstance(value, origin) else _refuse()
    return _written_scalar(value, origin)


def _written_scalar(value: Any, kind: Any) -> Any:
    if kind not in SCALARS:
        raise Mismatch("JSON has no word for this type")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and is_number:
        value = float(value)
        if not math.isfinite(value):
            raise Mismatch("JSON has no word for it")
    elif kind is bytes and isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    elif not isinstance(value, kind) or isinstance(value, NEITHER.get(kind, ())):
        _refuse()
    if kind is str:
        return _text(value)
    return SCALARS[kind][0](value)


def _text(value: str) -> str:
    if "\x00" in value:
        raise Mismatch("PostgreSQL keeps no NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Mismatch("it holds a lone surrogate") from None
    return str(value)


def _written_list(value: Any, origin: Any, inside: tuple[Any, ...]) -> list[Any]:
    if not isinstance(value, origin):
        _refuse()
    if _is_row(origin, inside):
        if len(value) != len(inside):
            _refuse()
        return [_written(member, kind) for member, kind in zip(value, inside, strict=True)]
    kind = inside[0] if inside else Any
    members = [_written(member, kind) for member in value]
    # Equal sets are to be equal texts.
    return sorted(members, key=json.dumps) if origin in (set, frozenset) else members


def _is_row(origin: Any, inside: tuple[Any, ...]) -> bool:
    """Return whether a tuple has a type for each place.

    One type alone stands for any number of them: so many write it, and one place needs no tuple.
    """
    return origin is tuple and len(inside) > 1 and Ellipsis not in inside


def _written_mapping(value: Any, inside: tuple[Any, ...]) -> Any:
    if not isinstance(value, Mapping):
        _refuse()
    key_kind, kind = inside or (str, Any)
    pairs = [(_written(key, key_kind), _written(member, kind)) for key, member in value.items()]
    # JSON's keys are text; others go as pairs.
    return dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else pairs


def _plain(value: Any) -> Any:
    """Return a value of no declared type, which must be what JSON has words for."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_text(key): _plain(member) for key, member in value.items()}
    raise Mismatch("JSON has no word for it: declare the type of this field")


def _read(value: Any, kind: Any) -> Any:
    origin = get_origin(kind) or kind
    if origin is Annotated:
        return _read(value, get_args(kind)[0])
    if kind in (Any, object) or origin is Literal:
        return value
    if kind is None or kind is type(None):
        return _same(value, None)
    if origin in (Union, types.UnionType):
        return _first(value, get_args(kind), _read)
    if origin in LISTS:
        return _read_list(value, origin, get_args(kind))
    if origin in (dict, Mapping):
        key_kind, member_kind = get_args(kind) or (str, Any)
        pairs = value.items() if isinstance(value, dict) else value
        return {_read(key, key_kind): _read(member, member_kind) for key, member in pairs}
    if isinstance(origin, type) and issubclass(origin, Enum):
        return origin(value)
    if origin not in SCALARS:
        raise Mismatch("JSON has no word for this type")
    return _read_scalar(value, origin)


def _read_scalar(value: Any, kind: Any) -> Any:
    is_text = isinstance(value, str)
    if (kind is str and not is_text) or (is_text and kind in (int, float, bool)):
        _refuse()
    try:
        return SCALARS[kind][1](value)
    except (TypeError, InvalidOperation):
        return _refuse()


def _read_list(value: Any, origin: Any, inside: tuple[Any, ...]) -> Any:
    if not isinstance(value, list):
        _refuse()
    if _is_row(origin, inside):
        return tuple(_read(member, kind) for member, kind in zip(value, inside, strict=False))
    kind = inside[0] if inside else Any
    return origin(_read(member, kind) for member in value)


def _first(value: Any, kinds: tuple[Any, ...], turned: Callable[[Any, Any], Any]) -> Any:
    for kind in sorted(kinds, key=lambda one: one is str):
        try:
            return turned(value, kind)
        except (Mismatch, ValueError):
            continue
    return _refuse()


def _same(value: Any, wanted: Any) -> Any:
    return value if value is wanted else _refuse()


def _refuse() -> Any:
    raise Mismatch


def _word(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
