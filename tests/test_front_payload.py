"""Arguments and results as JSON text: what is kept, and what is refused by its place."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict, deque
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import pytest
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_once import payload


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_what_json_has_words_for_comes_back_as_it_was(value):
    text = payload.encode(value, "args", most_bytes=10**6)

    assert payload.decode(text) == value
    assert payload.plain(value, "args") == value


@pytest.mark.parametrize(
    ("given_value", "kept"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        (Colour.RED, "red"),
        ({Colour.RED: Size.LARGE}, {"red": 3}),
        (mark_safe("<b>"), "<b>"),
        (True, True),
        (-0.0, -0.0),
    ],
)
def test_what_is_alike_becomes_plain(given_value, kept):
    plain = payload.plain(given_value, "args")

    assert plain == kept
    assert type(plain) is type(kept)
    assert json.loads(payload.encode(given_value, "args", most_bytes=1000)) == kept


@pytest.mark.parametrize(
    "unsayable",
    [
        {1, 2}, frozenset(), datetime(2026, 1, 1), Decimal("1.5"), UUID(int=1), b"bytes",
        bytearray(b"x"), memoryview(b"x"), object(), complex(1, 2), gettext_lazy("later"),
        {1: 2}, {None: 1}, {(1, 2): 3}, {True: 1}, iter([1]), len, ValueError,
    ],
    ids=repr,
)  # fmt: skip
def test_a_type_that_json_has_no_word_for_is_refused_by_its_place(unsayable):
    with pytest.raises(TypeError, match=r"^Unsupported type: .*args\[0\]\['a'\].*\.$"):
        payload.plain([{"a": unsayable}], "args")


@pytest.mark.parametrize(
    "unkeepable",
    [float("nan"), float("inf"), -float("inf"), 2**63, -(2**63) - 1, 2**70, 10**400, "a\x00b"],
)
def test_a_value_that_would_come_back_changed_is_refused_by_its_place(unkeepable):
    with pytest.raises(ValueError, match=r"^kwargs\['n'\]\[1\] .*\.$"):
        payload.plain({"n": [1, unkeepable]}, "kwargs")


def test_a_nul_in_a_key_is_refused_too():
    with pytest.raises(ValueError, match="a key of kwargs holds a NUL character"):
        payload.plain({"a\x00": 1}, "kwargs")


@pytest.mark.parametrize("text", ["\ud800", ["x", {"y": "\udfff"}], {"\ud800": 1}])
def test_lone_surrogates_are_refused_before_a_driver_stumbles_over_them(text):
    with pytest.raises(ValueError, match=r"^args holds text with a lone surrogate"):
        payload.encode(text, "args", most_bytes=1000)


def test_letters_beyond_the_first_plane_are_kept():
    assert payload.decode(payload.encode("🐘", "args", most_bytes=1000)) == "🐘"


def test_depth_has_an_end_and_nothing_overflows_before_it():
    assert payload.plain(nested(payload.DEEPEST - 2), "args")

    for depth in (payload.DEEPEST, 1_000, 100_000):
        with pytest.raises(ValueError, match=r"is nested deeper than 100 levels\.$"):
            payload.plain(nested(depth), "args")


def test_a_value_that_holds_itself_is_too_deep():
    circle: list = []
    circle.append(circle)

    with pytest.raises(ValueError, match="nested deeper"):
        payload.plain(circle, "args")


def test_ten_megabytes_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"^args takes 10,000,002 bytes .* may take 1,000,000"):
        payload.encode("x" * 10_000_000, "args", most_bytes=1_000_000)


def test_size_is_counted_in_bytes_and_not_in_letters():
    with pytest.raises(ValueError, match="takes 12 bytes"):
        payload.encode("é" * 5, "args", most_bytes=11)

    assert payload.encode("é" * 5, "args", most_bytes=12)


def test_a_mapping_has_an_end_too():
    with pytest.raises(ValueError, match="has 10,001 keys and may have 10,000"):
        payload.plain(dict.fromkeys(map(str, range(10_001))), "kwargs")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_entry_holds_class_and_traceback_and_lacks_its_brace():
    try:
        raise ValueError("nul \x00 and surrogate \ud800")
    except ValueError as error:
        text = payload.entry("raised", error, attempt=2, worker="ann", history_length=0)

    entry = json.loads("{" + text)
    assert (entry["kind"], entry["attempt"], entry["worker"]) == ("raised", 2, "ann")
    assert entry["error"] == "builtins.ValueError"
    assert r"nul \x00 and surrogate \ud800" in entry["traceback"]
    assert "\x00" not in entry["traceback"]


def test_an_exception_that_cannot_speak_is_written_down_all_the_same():
    text = payload.entry("raised", Mute(), attempt=1, worker="ann", history_length=0)

    assert "Mute" in json.loads("{" + text)["error"]


def test_a_huge_traceback_keeps_its_beginning_and_its_end():
    try:
        raise ValueError("first " + "x" * 200_000 + " last")
    except ValueError as error:
        text = payload.traceback_of(error)

    assert len(text) < payload.LONGEST_TRACEBACK + 100
    assert text.startswith("Traceback")
    assert text.endswith(" last\n")
    assert "characters left out" in text


def test_a_long_history_gets_short_tracebacks():
    try:
        raise ValueError("x" * 5_000)
    except ValueError as error:
        text = payload.entry("raised", error, attempt=1, worker="a", history_length=300_000)

    assert len(json.loads("{" + text)["traceback"]) == payload.SHORT_TRACEBACK
