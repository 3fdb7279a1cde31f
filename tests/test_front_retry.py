"""From an error and a number of failures to "again, then" or "no more"."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once import Retry
from django_once.errors import InvalidOption


def test_waits_grow_by_the_factor_up_to_the_cap():
    policy = Retry(max_attempts=10, base="5s", factor=3, cap="1m", jitter=0)

    waits = [policy.delay(failures).total_seconds() for failures in range(1, 6)]

    assert waits == [5, 15, 45, 60, 60]


def test_a_thousand_failures_overflow_nothing():
    policy = Retry(max_attempts=1_000, base="1s", factor=100, cap="1h")

    assert policy.delay(999) == timedelta(hours=1)


def test_the_last_attempt_is_not_tried_again():
    policy = Retry(max_attempts=3)

    assert policy.decide(ValueError(), 2) is not None
    assert policy.decide(ValueError(), 3) is None


def test_jitter_moves_a_wait_either_way_and_no_further():
    policy = Retry(base="100s", jitter=0.1)

    waits = {policy.decide(ValueError(), 1).total_seconds() for _ in range(200)}

    assert 90 <= min(waits) < 99 < 101 < max(waits) <= 110


def test_without_jitter_a_wait_is_exact():
    assert Retry(base="7s", jitter=0).decide(ValueError(), 1) == timedelta(seconds=7)


def test_only_named_exceptions_are_tried_again():
    policy = Retry(on=(OSError,), give_up_on=FileNotFoundError)

    assert policy.decide(ConnectionError(), 1) is not None
    assert policy.decide(FileNotFoundError(), 1) is None
    assert policy.decide(ValueError(), 1) is None


def test_what_is_no_exception_of_a_program_is_not_tried_again():
    assert Retry().decide(SystemExit(), 1) is None


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 1_001}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2.0}, "max_attempts"),
        ({"max_attempts": "3"}, "max_attempts"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"factor": "2"}, "factor"),
        ({"jitter": 1.5}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
        ({"jitter": float("nan")}, "jitter"),
        ({"base": "soon"}, "base"),
        ({"cap": -1}, "cap"),
        ({"on": "ValueError"}, "on"),
        ({"on": (ValueError, 5)}, "on"),
        ({"give_up_on": int}, "give_up_on"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_by_its_word(said, named):
    with pytest.raises(InvalidOption, match=rf"^Retry\({named}=…\) .*, got .*\.$"):
        Retry(**said)
