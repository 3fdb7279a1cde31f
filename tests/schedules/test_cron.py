"""Expressions: what they name, and what is refused at once, with the value and the remedy."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from django_once.definitions import cron as crons
from django_once.errors import InvalidOption


def walls(text, count, name="", begin=datetime(2026, 1, 1)):
    found, wall = [], begin
    for _ in range(count):
        wall = crons.read(text, name).wall_after(wall)
        found.append(wall.strftime("%m-%d %H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@daily", ["01-02 00:00:00", "01-03 00:00:00"]),
        ("@Hourly", ["01-01 01:00:00", "01-01 02:00:00"]),
        ("0 9 * * MON-FRI", ["01-01 09:00:00", "01-02 09:00:00", "01-05 09:00:00"]),
        ("0 9 * * FRI-MON", ["01-02 09:00:00", "01-03 09:00:00", "01-04 09:00:00"]),
        ("0 22-2/2 * * *", ["01-01 02:00:00", "01-01 22:00:00", "01-02 00:00:00"]),
        ("0 0 L * *", ["01-31 00:00:00", "02-28 00:00:00"]),
        ("0 0 LW * *", ["01-30 00:00:00", "02-27 00:00:00"]),
        ("0 0 * * FRI#2", ["01-09 00:00:00", "02-13 00:00:00"]),
        ("0 0 * * 5L", ["01-30 00:00:00", "02-27 00:00:00"]),
        ("0 0 * * L5", ["01-30 00:00:00", "02-27 00:00:00"]),
        ("0 0 1 * MON", ["01-05 00:00:00", "01-12 00:00:00"]),
        ("*/20 * * * * *", ["01-01 00:00:20", "01-01 00:00:40", "01-01 00:01:00"]),
        ("\t0  6 * * 7 ", ["01-04 06:00:00"]),
    ],
)
def test_an_expression_names_these_wall_times(text, expected):
    assert walls(text, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 0 31 2 *", "no date is like that"),
        ("0 0 31 4,6 *", "no date is like that"),
        ("0 0 * 2 MON#5", "no date within 5 years"),
        ("0 0 LW * */6", "no date within 5 years"),
        ("61 * * * *", "Bad minute"),
        ("* 24 * * *", "Bad hour"),
        ("* * * *", "4 fields"),
        ("", "0 fields"),
        ("0 0 * * * * 2026", "7 fields"),
        ("@reboot", "a start is no moment"),
        ("@dayly", "there are @yearly"),
        ("*/0 * * * *", "Bad minute"),
        ("1,,2 * * * *", "Bad minute"),
        ("0 0 ? * *", r"\? is unknown"),
        ("0 0 15W * *", "15W is unknown"),
        ("H(50-70) * * * *", "does not fit into its minute"),
        ("H/0 * * * *", "does not fit into its minute"),
        ("22-2/0 * * * *", "Bad minute"),
        ("٣ * * * *", "characters"),
        ("0 0 * * *\x00", "characters"),
        ("1-2-3 * * * *", "Bad minute"),
        (",".join(["1"] * 100) + " * * * *", "longer than 180"),
        ("*" * 300, "at most 255"),
        (12, "at most 255"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(text, why):
    began = time.perf_counter()

    with pytest.raises(InvalidOption, match=why):
        crons.read(text)

    assert time.perf_counter() - began < 0.5


def test_each_name_has_a_place_of_its_own():
    texts = {crons.read("H H * * *", f"schedule {n}").expression for n in range(100)}

    assert len(texts) > 90


def test_a_place_stays_within_what_its_field_and_its_brackets_allow():
    for n in range(200):
        second, minute, hour, day, month, weekday = crons.read(
            "H H(10-19) H/6 H H H", f"{n}"
        ).expression.split()
        first, _, step = hour.partition("/")

        assert 0 <= int(second) <= 59
        assert 10 <= int(minute) <= 19
        assert 0 <= int(first.split("-")[0]) < 6
        assert step == "6"
        assert 1 <= int(day) <= 28
        assert 1 <= int(month) <= 12
        assert 0 <= int(weekday) <= 6


def test_what_is_hashed_never_moves_from_one_release_to_the_next():
    assert crons.read("H H * * *", "nightly-billing").expression == "10 15 * * *"


def test_an_expression_says_in_words_what_it_means():
    assert crons.read("0 2 * * *").in_words() == "At 02:00 every day"
    assert crons.read("@hourly").in_words() == "At the start of every hour"
