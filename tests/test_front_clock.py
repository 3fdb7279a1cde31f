"""Durations, moments, and the offset by which tests move the database's now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.test import override_settings

from django_once import clock
from django_once.errors import InvalidOption


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("6h", timedelta(hours=6)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("250ms", timedelta(milliseconds=250)),
        ("1h30m", timedelta(minutes=90)),
        (" 1.5s ", timedelta(seconds=1.5)),
        (0, timedelta(0)),
        (2.5, timedelta(seconds=2.5)),
        (timedelta(days=3), timedelta(days=3)),
    ],
)
def test_a_duration_is_a_timedelta_seconds_or_text(written, meant):
    assert clock.duration(written, "LEASE") == meant


@pytest.mark.parametrize(
    "absurd",
    [
        "", "5", "five minutes", "5 m", "-5s", "5x", "1e9s", "m", True, None, [], b"5s",
        -1, timedelta(seconds=-1), float("nan"), float("inf"), 1e300, "99999999d", 10**400,
        timedelta(days=4000), timedelta.max,
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_by_its_name(absurd):
    with pytest.raises(InvalidOption, match=r"^LEASE must .*\.$"):
        clock.duration(absurd, "LEASE")


def test_a_moment_may_be_long_past():
    past = datetime(1999, 12, 31, tzinfo=UTC)

    assert clock.moment(past, "run_after") == past


@pytest.mark.parametrize(
    "absurd",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
        datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
        datetime(999, 1, 1),
    ],
)
def test_a_moment_that_no_column_keeps_is_refused(absurd):
    with pytest.raises(InvalidOption, match=r"^run_after must be from 1970 to 9998, got"):
        clock.moment(absurd, "run_after")


def test_a_moment_without_a_zone_is_in_the_zone_of_the_project():
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        assert clock.to_utc(datetime(2026, 1, 1, 9)) == datetime(2026, 1, 1, tzinfo=UTC)


def test_what_comes_from_a_column_is_shown_as_the_settings_want_it():
    stored = datetime(2026, 1, 1)

    assert clock.from_database(None) is None
    assert clock.from_database(stored) == datetime(2026, 1, 1, tzinfo=UTC)
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        assert clock.from_database(stored) == datetime(2026, 1, 1, 9)


def test_the_hosts_now_follows_the_offset_and_goes_back_with_it():
    before = clock.host_now()

    clock.move(timedelta(days=2))
    moved = clock.host_now()
    clock.move(timedelta(days=-2))

    assert timedelta(days=2) <= moved - before < timedelta(days=2, minutes=1)
    assert clock.offset() == timedelta(0)


@pytest.mark.parametrize("vendor", ["postgresql", "sqlite", "mysql"])
def test_now_names_no_offset_while_nobody_moved_the_clock(vendor):
    still = clock.now_sql(vendor)

    clock.move(timedelta(seconds=1.5))
    moved = clock.now_sql(vendor)
    clock.move(timedelta(seconds=-1.5))

    assert "1.5" not in still
    assert "1.500000 seconds" in moved or "1500000 microsecond" in moved
    assert clock.now_sql(vendor) == still
