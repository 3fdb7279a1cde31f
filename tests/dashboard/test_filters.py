"""The filter language: what each word means, and where a mistake stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_once.dashboard import filters
from django_once.dashboard.filters import FilterError, parse, quoted, written
from django_once.sql.windows import Clause

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def clauses(text: str) -> tuple[Clause, ...]:
    return parse(text, NOW).clauses


def test_words_stand_beside_each_other():
    assert clauses("task:charge queue:mail state:failed since:2h arg:order_id=812") == (
        Clause("task", ("charge",)), Clause("queue", ("mail",)), Clause("state", ("failed",)),
        Clause("since", (NOW - timedelta(hours=2),)), Clause("arg", ("812",), name="order_id"),
    )  # fmt: skip
    assert clauses("   ") == ()


def test_a_word_said_twice_means_either_and_a_minus_the_opposite():
    assert clauses("queue:a queue:b -queue:c state:failed,running") == (
        Clause("queue", ("a", "b")), Clause("queue", ("c",), negated=True),
        Clause("state", ("failed", "running")),
    )  # fmt: skip


def test_what_has_no_name_is_an_id_or_a_part_of_a_path():
    assert clauses("0199c3a1-7f00") == (Clause("id", ("0199c3a17f00",)),)
    assert clauses("feed") == (Clause("text", ("feed",)),)


@pytest.mark.parametrize("value", ["a b", 'say "x"', "back\\slash", "a:b", "ä", "x,y", "'; --"])
def test_every_value_can_be_written_and_read_again(value):
    assert clauses(written(key=value)) == (Clause("key", (value,)),)
    assert clauses(f"queue:{quoted(value)} task:x")[0] == Clause("queue", (value,))


@pytest.mark.parametrize(
    ("text", "wrong", "says"),
    [
        ("queue:mail state:faild", "state:faild", "Did you mean failed?"),
        ("stat:failed", "stat:failed", "Did you mean state:?"),
        ("queue:mail task:", "task:", "Nothing stands behind task:"),
        ('a task:"x y', '"x y', "not closed"),
        ('key:""', '""', "Nothing stands between"),
        ("x since:yesterday", "since:yesterday", "takes a length of time"),
        ("since:1h since:2h", "since:2h", "said twice"),
        ("-since:1h", "-since:1h", "takes no minus"),
        ("since:99999999999d", "since:99999999999d", "takes a length of time"),
        ("arg:order_id", "arg:order_id", "takes a name and a value"),
        ("attempt:many", "attempt:many", "takes a number"),
        ("id:xyz", "id:xyz", "takes an id"),
        ("queue:mail -", "-", "A word is missing"),
        ("queue:\x00", "queue:\x00", "NUL"),
    ],
)
def test_a_mistake_is_told_with_its_place(text, wrong, says):
    with pytest.raises(FilterError) as refused:
        parse(text, NOW)

    assert text[refused.value.begin : refused.value.end] == wrong
    assert says in refused.value.says


def test_who_may_not_see_arguments_may_not_look_for_them_either():
    with pytest.raises(FilterError, match="once.view_payload"):
        parse("arg:password=a", NOW, sees_arguments=False)


def test_a_log_does_not_say_which_arguments_were_looked_for():
    shown = filters.without_arguments('state:failed arg:name="a b" arg:x=1 queue:m')

    assert shown == "state:failed arg:name=… arg:x=… queue:m"


def test_any_text_is_parsed_or_refused():
    for text in (
        "::",
        ":",
        '"',
        '\\"',
        "a:b:c",
        "--",
        "-:",
        "x" * 2000,
        "🦉",
        "%_!",
        "arg:=",
        '"":x',
    ):
        begin, end = place_of_mistake(text)
        assert 0 <= begin <= end <= len(text)


def place_of_mistake(text: str) -> tuple[int, int]:
    try:
        parse(text, NOW)
    except FilterError as refused:
        return refused.begin, refused.end
    return 0, 0
