"""What cannot be meant is refused with one sentence, at import or at enqueue."""

from __future__ import annotations

import pytest

from django_once import Limit, Unique, task
from django_once.definitions import template
from django_once.errors import InvalidOption


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"key": "x"}, "limits nothing: say concurrency= or rate="),
        ({"key": "x", "concurrency": 0}, "must be a whole number from 1"),
        ({"key": "x", "concurrency": -3}, "must be a whole number from 1"),
        ({"key": "x", "concurrency": True}, "must be a whole number from 1"),
        ({"key": "x", "concurrency": 1.5}, "must be a whole number from 1"),
        ({"key": "x", "rate": "many"}, "rate must be jobs per time such as '30/m'"),
        ({"key": "x", "rate": 30}, "rate must be jobs per time"),
        ({"key": "x", "rate": "0/m"}, "must let something begin"),
        ({"key": "x", "rate": "3/0s"}, "must let something begin"),
        ({"key": "x", "concurrency": 1, "burst": 5}, "say rate=, too"),
        ({"key": "", "concurrency": 1}, "a name of 1 to 160 characters"),
        ({"key": "x{", "concurrency": 1}, "cannot be read"),
        ({"key": "x:{}", "concurrency": 1}, "must name its arguments"),
        ({"key": "x:{0}", "concurrency": 1}, "must name its arguments"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused(said, sentence):
    with pytest.raises(InvalidOption, match=sentence.replace("(", r"\(")):
        Limit(**said)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"until": "begun"}, "until must be one of started, finished"),
        ({"on_conflict": "ignore"}, "on_conflict must be one of existing, replace, raise"),
        ({"window": 0}, "must be longer than nothing"),
        ({"window": "soon"}, "must be a timedelta, seconds, or text"),
        ({"key": 7}, "a name of 1 to 160 characters"),
    ],
)
def test_a_uniqueness_that_cannot_be_meant_is_refused(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        Unique(**said)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"limit": 3}, r"limit must be a Limit\(…\)"),
        ({"limit": Limit("x:{tenant}", concurrency=1)}, "asks for 'tenant', which"),
        ({"unique": "x:{tenant}"}, "asks for 'tenant', which"),
        ({"unique": 7}, "unique must be True, a name"),
        ({"fair_key": "x:{tenant}"}, "fair_key='x:{tenant}' asks for 'tenant'"),
        ({"weight": 3}, "say whose, by fair_key"),
        ({"fair_key": "x", "weight": 0}, "weight must be above 0"),
        ({"fair_key": "x", "weight": {"a": "much"}}, "weight must be above 0"),
        ({"debounce": "0s"}, "debounce must be longer than nothing"),
        ({"debounce": "1s", "cooldown": "1s"}, "take one of them away"),
        ({"debounce": "1s", "unique": Unique("x", until="started")}, "say the name alone"),
        ({"unique": True, "key": "x"}, "take one of them away"),
    ],
)
def test_options_that_contradict_each_other_are_refused_at_import(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):

        @task(**said)
        def refused(order: int) -> None: ...


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("x:{items}", {"items": [1, 2]}, r"'items' is \[1, 2\], which names nothing"),
        ("x:{order[id]}", {"order": {}}, "which this call does not have"),
        ("x:{name}", {"name": "x" * 200}, "there is room for 160"),
        ("x:{n:q}", {"n": 3}, "could not be filled"),
    ],
)
def test_a_name_that_cannot_be_filled_is_refused_at_enqueue(name, arguments, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        template.filled(name, arguments, "unique")


def test_names_are_filled_from_arguments_and_their_parts():
    arguments = {"order": {"id": 7}, "tenant": None}

    assert template.filled("o:{order[id]}:{tenant}", arguments, "unique") == "o:7:None"
    assert template.filled(template.literal("a{b}"), {}, "unique") == "a{b}"


@pytest.mark.parametrize(
    ("rate", "interval"), [("30/m", 2.0), ("5/s", 0.2), ("100/15m", 9.0), ("1 / h", 3600.0)]
)
def test_a_rate_is_read_as_jobs_per_time(rate, interval):
    assert Limit("x", rate=rate).interval == pytest.approx(interval)
