"""Rules in time through clock changes: whatever zone and expression, as Debian's cron has it.

An oracle walks the minutes around every change of ten years. ONCE_TEST_WHOLE_DECADE=minutes walks
every minute of them, which takes long.
"""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from django_once.definitions import cron as crons
from django_once.definitions.moments import Grid, Walls, kind_of
from tests.schedules import oracle
from tests.schedules.oracle import utc

ZONES = (
    "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago",
    "Europe/Dublin", "Antarctica/Troll",
)  # fmt: skip
EXPRESSIONS = (
    "30 2 * * *", "30 1 * * *", "0 0 * * *", "0 3 * * *", "15 0,1,2,3 * * *", "59 1-2 * * *",
    "*/30 * * * *", "0 * * * *", "*/20 1 * * *", "*/30 1-2 * * *", "15 * * * *", "5 */2 * * *",
    "0-59/7 1-3 * * *", "30 2 * * sun", "0 0 1,15 * sun", "45 23 * * *", "* 2 * * *",
)  # fmt: skip
BEGIN, END = utc(2026, 1, 1), utc(2036, 1, 1)
WHOLE = os.environ.get("ONCE_TEST_WHOLE_DECADE", "")


def ours(expression, zone, begin, end, **rules):
    walls = Walls(crons.read(expression), ZoneInfo(zone), **rules)
    found, moment = [], walls.after(begin - timedelta(seconds=1))
    while moment is not None and moment < end:
        found.append(moment)
        moment = walls.after(moment)
    return found


def periods(zone):
    """Return the days around each change; or the decade, where there is time."""
    if WHOLE == "minutes":
        return [(BEGIN, END)]
    day = timedelta(days=1)
    return [(change - day, change + day) for change in oracle.changes(zone, BEGIN, END)]


@pytest.mark.timeout(3600 if WHOLE else 120)
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("zone", ZONES)
def test_a_rule_names_the_instants_at_which_debians_cron_would_start(expression, zone):
    for begin, end in periods(zone):
        assert ours(expression, zone, begin, end) == oracle.firings(expression, zone, begin, end)


@pytest.mark.parametrize("zone", ZONES)
def test_every_zone_of_the_test_changes_its_clock_twice_a_year(zone):
    assert len(oracle.changes(zone, BEGIN, END)) == 20


@pytest.mark.parametrize(
    ("zone", "expression", "begin", "walls"),
    [
        ("Europe/Berlin", "30 2 * * *", utc(2026, 3, 28, 12), ["29 03:00", "30 02:30"]),
        ("Europe/Berlin", "30 2 * * *", utc(2026, 10, 24, 12), ["25 02:30", "26 02:30"]),
        ("Europe/Berlin", "0 2-3 * * *", utc(2026, 3, 28, 12), ["29 03:00", "30 02:00"]),
        ("America/New_York", "30 2 * * *", utc(2026, 3, 7, 12), ["08 03:00", "09 02:30"]),
        ("America/New_York", "30 1 * * *", utc(2026, 10, 31, 12), ["01 01:30", "02 01:30"]),
        ("America/New_York", "*/20 1 * * *", utc(2026, 11, 1, 4),
         ["01 01:00", "01 01:20", "01 01:40"] * 2),
        ("America/New_York", "0 * * * *", utc(2026, 11, 1, 4, 30),
         ["01 01:00", "01 01:00", "01 02:00"]),
        ("America/Havana", "30 0 * * *", utc(2026, 3, 7, 12), ["08 01:00", "09 00:30"]),
        ("Asia/Beirut", "0 0 * * *", utc(2026, 3, 28, 12), ["29 01:00", "30 00:00"]),
        ("Africa/Casablanca", "30 2 * * *", utc(2026, 2, 14, 12), ["15 02:30", "16 02:30"]),
        # A whole day was left out: that is a correction, and its fixed times are gone with it.
        ("Pacific/Apia", "0 12 * * *", utc(2011, 12, 29, 23), ["31 12:00", "01 12:00"]),
    ],
)  # fmt: skip
def test_what_people_know_of_clock_changes_comes_true(zone, expression, begin, walls):
    moments = ours(expression, zone, begin, begin + timedelta(days=4))

    shown = [moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M") for moment in moments]
    assert shown[: len(walls)] == walls


@pytest.mark.parametrize(
    ("rules", "days"),
    [
        ({}, ["08 03:00-0400", "09 02:30-0400"]),
        ({"gap": "shift"}, ["08 03:00-0400", "09 02:30-0400"]),
        ({"gap": "skip"}, ["09 02:30-0400", "10 02:30-0400"]),
    ],
)
def test_what_falls_into_a_gap_can_be_left_out(rules, days):
    begin = utc(2026, 3, 8, 5)

    moments = ours("30 2 * * *", "America/New_York", begin, begin + timedelta(days=3), **rules)

    zone = ZoneInfo("America/New_York")
    assert [m.astimezone(zone).strftime("%d %H:%M%z") for m in moments[:2]] == days


@pytest.mark.parametrize(
    ("rules", "offsets"),
    [({}, ["-0400"]), ({"fold": "first"}, ["-0400"]), ({"fold": "second"}, ["-0500"]),
     ({"fold": "both"}, ["-0400", "-0500"])],
)  # fmt: skip
@pytest.mark.parametrize("expression", ["30 1 * * *", "10,50 1 * * *"])
def test_what_comes_twice_can_run_in_either_pass_or_in_both(expression, rules, offsets):
    begin, zone = utc(2026, 11, 1, 4), ZoneInfo("America/New_York")

    moments = ours(expression, zone.key, begin, begin + timedelta(hours=12), **rules)

    times = len(expression.split()[0].split(","))
    found = [moment.astimezone(zone).strftime("%z") for moment in moments]
    assert found == [offset for offset in offsets for _ in range(times)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_asked_from_any_second_the_next_moment_is_the_same(expression):
    """Whoever asks from inside a second pass, or a gap's end, must not be sent back in time."""
    zone, begin = "America/New_York", utc(2026, 11, 1, 3)
    walls = Walls(crons.read(expression), ZoneInfo(zone))
    moments = ours(expression, zone, begin, begin + timedelta(days=2))

    for before, behind in pairwise(moments):
        for part in range(1, 10):
            assert walls.after(before + (behind - before) * part / 10) == behind


def test_a_grid_is_anchored_and_never_drifts():
    grid = Grid(timedelta(seconds=7), utc(2026, 1, 1))
    late = utc(2027, 5, 5, 5, 5, 5) + timedelta(microseconds=123456)

    following = grid.after(late)

    assert (following - utc(2026, 1, 1)) % timedelta(seconds=7) == timedelta(0)
    assert timedelta(0) < following - late <= timedelta(seconds=7)
    assert grid.after(following) == following + timedelta(seconds=7)
    assert grid.after(utc(2025, 12, 31, 23, 59, 59)) == utc(2026, 1, 1)


def test_people_are_told_where_a_clock_change_meets_a_moment():
    zone = ZoneInfo("Europe/Berlin")

    kinds = [
        kind_of(moment, zone)
        for moment in (utc(2026, 3, 29, 1), utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30),
                       utc(2026, 6, 1))
    ]  # fmt: skip

    assert kinds == ["after a gap", "first pass", "second pass", ""]
