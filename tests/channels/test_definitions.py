"""Channels that cannot be meant, and what they cannot carry: one sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from django_once.channel_checks import check_channels
from django_once.channels import (
    Channel,
    ChannelNotFound,
    InvalidNotification,
    Trigger,
    TriggerChannel,
    listener,
    notify,
    post_insert_listener,
    rows,
    trigger_listener,
)
from django_once.definitions import carrying
from django_once.definitions import channel as definitions
from django_once.definitions import listeners as hearing
from django_once.definitions.channel import words_of
from django_once.errors import InvalidOption
from tests.channels.shop.channels import AuthorChannel, OrderPlaced
from tests.channels.shop.models import Author


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Forget what a test declares."""
    monkeypatch.setattr(definitions, "_channels", dict(definitions._channels))
    monkeypatch.setattr(hearing, "_listeners", list(hearing._listeners))


class Colour(Enum):
    RED = "red"


@dataclass
class Carrier(Channel):
    """One field of each kind."""

    lock_notifications = True

    text: str
    whole: int
    ratio: float
    price: Decimal
    at: datetime
    day: date
    hour: time
    length: timedelta
    id: UUID
    blob: bytes
    colour: Colour
    names: list[str]
    pair: tuple[int, str]
    words: tuple[str]
    days: set[date]
    by_day: dict[date, int]
    by_number: dict[int, Decimal]
    maybe: int | None
    anything: Any
    note: str = "none"


CARRIED = {
    "text": "it's \"quoted\" \\ % ☃", "whole": -(2**40), "ratio": 0.1,
    "price": Decimal("12345678901234567.890"), "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "day": date(2026, 1, 2), "hour": time(3, 4), "length": timedelta(days=-1, microseconds=5),
    "id": UUID(int=7), "blob": b"\x00\xff", "colour": Colour.RED, "names": ["a", "b"],
    "pair": (1, "x"), "words": ("a", "b"), "days": {date(2026, 1, 2), date(2025, 1, 1)},
    "by_day": {date(2026, 1, 2): 3}, "by_number": {1: Decimal("0.10")}, "maybe": None,
    "anything": {"a": [1, None]},
}  # fmt: skip


def test_what_a_channel_carries_comes_back_as_it_was():
    text = carrying.written(Carrier, CARRIED)

    assert carrying.read(Carrier, text) == {**CARRIED, "note": "none"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", 5), ("text", "a\x00b"), ("whole", "5"), ("whole", True), ("whole", 1.5),
        ("ratio", float("nan")), ("ratio", "1"), ("price", 1.5), ("at", date(2026, 1, 2)),
        ("day", datetime(2026, 1, 2)), ("names", "ab"), ("names", [1]), ("pair", (1,)),
        ("words", ("a", 1)), ("maybe", "x"), ("anything", object()), ("colour", "red"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_with_its_field(field, value):
    with pytest.raises(InvalidNotification, match=f"Field '{field}' of channel"):
        carrying.written(Carrier, {**CARRIED, field: value})


def test_a_field_that_is_missing_or_unknown_is_named():
    with pytest.raises(InvalidNotification, match="was not told its field 'order_id'"):
        notify(OrderPlaced)
    with pytest.raises(InvalidNotification, match="has no field 'order'. It carries: order_id"):
        notify(OrderPlaced, order=1)


def test_a_stored_field_may_be_taken_away_and_a_new_one_has_its_default():
    text = '{"kwargs":{"order_id":3,"gone":1}}'

    assert carrying.read(OrderPlaced, text) == {"order_id": 3, "note": ""}


def test_a_channel_without_model_is_refused():
    @dataclass
    class Lacking(TriggerChannel):
        lock_notifications = True

    with pytest.raises(InvalidOption, match="has no model: say which, by model = …"):
        post_insert_listener(Lacking)(lambda old, new: None)


def test_a_base_hears_what_is_made_of_it():
    @dataclass
    class Base(TriggerChannel):
        abstract = True
        lock_notifications = True

    @listener(Base)
    def hear(old: Any, new: Any) -> None: ...

    @dataclass
    class Made(Base):
        model = Author

    assert [one.function for one in hearing.listeners_of(Made)] == [hear]
    assert set(hearing.events_heard(Made)) == {"post_insert", "post_update", "post_delete"}


@pytest.mark.parametrize(
    "function",
    [
        lambda old: None,
        lambda old, new, more: None,
        lambda: None,
        lambda a, b: None,
    ],
)
def test_a_listener_that_does_not_fit_is_refused(function):
    with pytest.raises(InvalidOption, match="does not fit channel .*AuthorChannel, which calls it"):
        post_insert_listener(AuthorChannel)(function)


def test_an_unknown_channel_is_refused_with_the_nearest():
    with pytest.raises(ChannelNotFound, match="Did you mean 'tests.channels.shop.channels.Order"):
        notify("tests.channels.shop.channels.OrderPlacd", order_id=1)
    with pytest.raises(ChannelNotFound, match="A channel is a class"):
        listener(int)


def test_a_channel_of_triggers_is_not_told_by_hand():
    with pytest.raises(InvalidNotification, match="is told by triggers"):
        notify(AuthorChannel, old=None, new=None)


def test_a_group_that_the_channel_does_not_have_is_refused():
    with pytest.raises(InvalidOption, match="has no group 'crm': it has default"):
        listener(OrderPlaced, group="crm")


def test_a_trigger_is_of_known_words():
    with pytest.raises(InvalidOption, match="'pre' or 'post'"):
        Trigger("after", "insert")
    with pytest.raises(InvalidOption, match="has no model whose changes"):
        trigger_listener(OrderPlaced, Trigger("post", "insert"))
    with pytest.raises(InvalidOption, match="must be a Trigger"):
        trigger_listener(AuthorChannel, "post")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"delivery": "exactly_onse"}, "Did you mean 'exactly_once'"),
        ({"groups": ()}, "groups must be different names"),
        ({"groups": ("a", "a")}, "groups must be different names"),
        ({"groups": ("",)}, "groups must be names of 1 to 50"),
        ({"retention": "soon"}, "retention must be a timedelta"),
        ({"retry": 3}, "retry must be a Retry"),
        ({"priority": 101}, "priority must be a whole number"),
        ({"order_by": "place"}, "order_by names 'place', which it does not carry"),
        ({"lock_notifications": False, "order_by": "order_id"}, "order_by keeps the order"),
        ({"queue_name": "q" * 65}, "queue_name has 1 to 64"),
    ],
)
def test_words_that_cannot_be_meant_are_refused_and_found_by_check(said, sentence, monkeypatch):
    for name, value in said.items():
        monkeypatch.setattr(OrderPlaced, name, value)

    with pytest.raises(InvalidOption, match=sentence):
        words_of(OrderPlaced)
    found = [one for one in check_channels() if one.id == "once.E011"]
    assert len(found) == 1
    assert sentence in found[0].msg


def test_a_forgotten_dataclass_is_noticed():
    class Forgotten(Channel):
        lock_notifications = True
        order_id: int

    with pytest.raises(InvalidOption, match="put @dataclass above the class"):
        words_of(Forgotten)


def test_a_field_with_the_name_of_a_word_is_refused():
    @dataclass
    class Mixed(Channel):
        lock_notifications = True
        priority: int = 3

    with pytest.raises(InvalidOption, match="a field 'priority', which is a word"):
        words_of(Mixed)


def test_a_model_that_is_none_is_refused():
    @dataclass
    class Wrong(TriggerChannel):
        model = "shop.Nobody"

    @dataclass
    class Worse(TriggerChannel):
        model = int

    for channel, sentence in ((Wrong, "which is not there"), (Worse, "must name a model")):
        with pytest.raises(InvalidOption, match=sentence):
            rows.model_of(channel)


def test_a_channel_whose_jobs_are_elsewhere_is_found_by_check(monkeypatch):
    monkeypatch.setattr(AuthorChannel, "backend", "other")

    (found,) = [one for one in check_channels() if one.id == "once.E011"]

    assert "name a backend with that database" in found.msg


def test_a_group_in_which_nobody_listens_is_found_by_check(monkeypatch):
    monkeypatch.setattr(OrderPlaced, "groups", ("default", "nobody"))

    (found,) = [one for one in check_channels() if one.id == "once.W019"]

    assert (
        "Nobody listens to channel tests.channels.shop.channels.OrderPlaced in nobody" in found.msg
    )


def test_the_shop_says_nothing_wrong():
    assert check_channels() == []
