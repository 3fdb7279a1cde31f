"""Arguments, results and errors as JSON text, refused early when JSON cannot keep them.

What a task receives is what its caller sees in the result: both are read back from the same
text. So a value that JSON would change in silence (a key that is a number, a NaN, bytes) is
refused where it is written, with its place in the value. A tuple becomes a list, as in Django.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

DEEPEST = 100
MOST_KEYS = 10_000
LARGEST_INTEGER = 2**63 - 1
LONGEST_TRACEBACK = 64 * 1024
LONG_HISTORY = 256 * 1024
SHORT_TRACEBACK = 1024
LONGEST_PATH = 1024

_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)
_decoder: Any = json.JSONDecoder()


def decode(text: str) -> Any:
    """Return the value of a JSON text."""
    if text == "{}":
        return {}
    try:
        # What was written here has no space around it, which json.loads would look for.
        value, end = _decoder.scan_once(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else json.loads(text)


def encode(value: Any, name: str, *, most_bytes: int) -> str:
    """Return the JSON text of a value; `name` is what a refusal calls it.

    Raises TypeError for a type that JSON has no word for, ValueError for a value it cannot keep.
    """
    if value is None:
        return "null"
    return write(plain(value, name), name, most_bytes=most_bytes)


def plain(value: Any, name: str) -> Any:
    """Return the value as its task will see it: made of what JSON has words for."""
    return _plain(value, name, 1)


def write(value: Any, name: str, *, most_bytes: int) -> str:
    """Return the JSON text of a plain value, refused when it is too large or not text at all."""
    text = _write(value)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} holds text with a lone surrogate, which no database keeps: clean the text "
            "before it is handed over."
        ) from None
    if size > most_bytes:
        raise ValueError(
            f"{name} takes {size:,} bytes as JSON and may take {most_bytes:,}: keep large things "
            "elsewhere and pass where they are."
        )
    return text


def _writer() -> Any:
    """Return what writes plain values; json makes a new one of these for each value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _encoder.encode
    parts = make(
        None, _encoder.default, json.encoder.encode_basestring, None, ":", ",", False, False, False
    )

    def write_plain(value: Any) -> str:
        return "".join(parts(value, 0))

    return write_plain


_write: Callable[[Any], str] = _writer()


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text or a word of JSON's already; most are."""
    kind = type(value)
    if kind is int:
        return bool(-LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER)
    if kind is str:
        return "\x00" not in value
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _plain(value: Any, place: str, depth: int) -> Any:
    """Return the value made of plain JSON types only, or refuse it by its place."""
    if _is_plain(value):
        return value
    if isinstance(value, str):
        return _plain_text(value, place)
    if isinstance(value, (int, float)):
        return _plain_number(value, place)
    if depth > DEEPEST:
        raise ValueError(f"{place} is nested deeper than {DEEPEST} levels.")
    if type(value) is list:
        # Asked first: to be told what is no Mapping takes longer than a short list.
        return _plain_members(value, place, depth)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"Unsupported type: {type(value)} at {place}. JSON has no bytes: pass text, "
            "for example base64."
        )
    if isinstance(value, Mapping):
        return _plain_mapping(value, place, depth)
    if isinstance(value, Sequence):
        return _plain_members(value, place, depth)
    raise TypeError(
        f"Unsupported type: {type(value)} at {place}. JSON keeps text, numbers, true, false, "
        "null, lists and objects."
    )


def _plain_members(value: Sequence[Any], place: str, depth: int) -> list[Any]:
    return [
        member if _is_plain(member) else _plain(member, f"{place}[{i}]", depth + 1)
        for i, member in enumerate(value)
    ]


def _plain_text(value: str, place: str) -> str:
    if "\x00" in value:
        raise ValueError(f"{place} holds a NUL character, which PostgreSQL cannot keep.")
    return str.__str__(value) if type(value) is not str else value


def _plain_number(value: float, place: str) -> float:
    if isinstance(value, int):
        if not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
            raise ValueError(f"{place} is an integer beyond 64 bits: pass it as text.")
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{place} is {value!r}, which JSON has no word for.")
    return float(value)


def _plain_mapping(value: Mapping[Any, Any], place: str, depth: int) -> dict[str, Any]:
    if len(value) > MOST_KEYS:
        raise ValueError(f"{place} has {len(value):,} keys and may have {MOST_KEYS:,}.")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(
                f"Unsupported type: {type(key)} as the key {key!r} of {place}. JSON keys are "
                "text, so the task would see another key than the caller."
            )
    return {
        key if _is_plain(key) else _plain(key, f"a key of {place}", depth): (
            member if _is_plain(member) else _plain(member, f"{place}[{key!r}]", depth + 1)
        )
        for key, member in value.items()
    }


def class_path(exception: BaseException) -> str:
    """Return the dotted path of an exception's class, as Django's TaskError wants it."""
    kind = type(exception)
    return f"{kind.__module__}.{kind.__qualname__}"


def traceback_of(exception: BaseException) -> str:
    """Return the formatted traceback; when it is huge, its beginning and its end."""
    try:
        text = "".join(traceback.format_exception(exception))
    except BaseException as broken:  # noqa: BLE001 - the exception is the user's, and so is its str()
        text = f"{class_path(exception)} (its traceback could not be written: {type(broken)})\n"
    if len(text) <= LONGEST_TRACEBACK:
        return text
    half = LONGEST_TRACEBACK // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"


def entry(
    kind: str, exception: BaseException, *, attempt: int, worker: str, history_length: int
) -> str:
    """Return the text of a history's next member, without its opening brace.

    The database puts its own time in front. A history that has grown long gets short tracebacks.
    """
    text = traceback_of(exception)
    if history_length > LONG_HISTORY and len(text) > SHORT_TRACEBACK:
        text = text[-SHORT_TRACEBACK:]
    member = {
        "kind": kind,
        "attempt": attempt,
        "worker": worker,
        "error": _storable(class_path(exception))[:LONGEST_PATH],
        "traceback": _storable(text),
    }
    return unbraced(member)


def unbraced(member: Mapping[str, Any]) -> str:
    """Return the text of a history's member, without its opening brace."""
    return _write(member)[1:]


def _storable(text: str) -> str:
    """Return a text that every database keeps: no NUL, no lone surrogates."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
