"""What becomes of due moments: late ones, those that meet another, and those nobody may run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once.definitions import schedule as schedules
from django_once.definitions.schedule import Pause, decide, policies, rule
from django_once.errors import InvalidOption
from tests.schedules.oracle import utc

NOON = utc(2026, 6, 1, 12)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def minutely(**said):
    return rule("m", cron="* * * * *", **said)


def verdicts(decision):
    return [one.reason or "runs" for one in decision.verdicts]


def test_a_moment_that_is_due_now_runs_and_names_the_next():
    decision = decide(minutely(), policies(), NOON, NOON)

    assert [(one.due_at, one.runs) for one in decision.verdicts] == [(NOON, True)]
    assert decision.next_due_at == NOON + MINUTE


def test_of_what_was_missed_the_last_runs_and_the_others_are_coalesced():
    decision = decide(minutely(), policies(), NOON, NOON + 3 * MINUTE)

    assert verdicts(decision) == ["coalesced"] * 3 + ["runs"]
    assert decision.verdicts[-1].due_at == NOON + 3 * MINUTE


def test_all_that_was_missed_runs_one_after_the_other_when_that_is_said():
    decision = decide(minutely(), policies(misfire="all"), NOON, NOON + 2 * MINUTE)

    assert verdicts(decision) == ["runs", "queued", "queued"]


def test_what_is_older_than_the_window_is_missed_and_does_not_run():
    decision = decide(
        minutely(), policies(misfire="all", overlap="allow", catch_up="2m"), NOON, NOON + 4 * MINUTE
    )

    assert verdicts(decision) == ["missed", "missed", "runs", "runs", "runs"]


def test_a_skipping_schedule_runs_nothing_late_and_what_is_on_time():
    late = decide(minutely(), policies(misfire="skip"), NOON, NOON + 3 * MINUTE + MINUTE / 2)

    assert verdicts(late) == ["missed"] * 3 + ["runs"]


@pytest.mark.parametrize(
    ("cron", "late", "outcome"),
    [
        ("* * * * *", timedelta(minutes=4), "runs"),
        ("0 * * * *", timedelta(minutes=59), "runs"),
        ("0 12 * * *", timedelta(hours=23), "runs"),
        ("0 12 1 * *", timedelta(hours=23), "runs"),
        ("0 12 1 * *", timedelta(hours=25), "missed"),
    ],
)
def test_a_late_moment_may_run_for_one_period_and_at_most_a_day(cron, late, outcome):
    decision = decide(rule("n", cron=cron), policies(), NOON, NOON + late)

    assert verdicts(decision)[-1] == outcome


@pytest.mark.parametrize(
    ("overlap", "open_runs", "outcome"),
    [
        ("skip", 0, "runs"), ("skip", 1, "overlap"),
        ("queue_one", 0, "runs"), ("queue_one", 1, "queued"), ("queue_one", 2, "overlap"),
        ("queue_all", 5, "queued"), ("allow", 5, "runs"),
    ],
)  # fmt: skip
def test_a_moment_that_meets_a_run_does_as_the_schedule_says(overlap, open_runs, outcome):
    decision = decide(minutely(), policies(overlap=overlap), NOON, NOON, open_runs=open_runs)

    assert verdicts(decision) == [outcome]


def test_what_is_due_during_a_pause_is_recorded_and_does_not_run():
    pause = Pause(NOON)

    decision = decide(minutely(), policies(), NOON, NOON + MINUTE, pause=pause)

    assert verdicts(decision) == ["paused", "paused"]


def test_a_pause_holds_what_falls_into_it_and_nothing_before_or_after():
    pause = Pause(NOON + MINUTE, NOON + 3 * MINUTE)
    every = policies(misfire="all", overlap="allow")

    decision = decide(minutely(), every, NOON, NOON + 4 * MINUTE, pause=pause)

    assert verdicts(decision) == ["runs", "paused", "paused", "runs", "runs"]


def test_a_year_of_missed_seconds_is_decided_in_bounded_steps():
    secondly = rule("s", cron="* * * * * *")

    decision = decide(secondly, policies(), NOON, NOON + timedelta(days=365))

    first, *rest = decision.verdicts
    assert (first.due_at, first.through) == (NOON, NOON + timedelta(days=364))
    assert len(rest) == schedules.MOST_AT_ONCE
    assert all(one.reason == "missed" for one in rest)
    assert decision.next_due_at == rest[-1].due_at + timedelta(seconds=1)


def test_of_a_backlog_in_steps_only_the_very_last_moment_runs():
    secondly, now = rule("s", cron="* * * * * *"), NOON + timedelta(seconds=1_200)
    next_due_at, runs = NOON, []

    while next_due_at <= now:
        decision = decide(secondly, policies(catch_up="1h"), next_due_at, now)
        runs += [one.due_at for one in decision.verdicts if one.runs]
        next_due_at = decision.next_due_at

    assert runs == [now]


def test_jitter_moves_the_firing_and_not_the_moment_and_is_the_same_each_time():
    spread = rule("j", cron="0 12 * * *", jitter="10m")

    fires_at = spread.fires_at(NOON)

    assert NOON < fires_at < NOON + timedelta(minutes=10)
    assert spread.fires_at(NOON) == fires_at != spread.fires_at(NOON + 24 * HOUR) - 24 * HOUR
    assert decide(spread, policies(), NOON, fires_at - MINUTE / 60).verdicts == ()
    assert [one.due_at for one in decide(spread, policies(), NOON, fires_at).verdicts] == [NOON]


def test_a_schedule_begins_and_ends_when_it_is_told():
    bounded = rule("b", cron="0 * * * *", starts=NOON, ends=NOON + 2 * HOUR)

    moments = list(bounded.between(NOON - 24 * HOUR, NOON + 24 * HOUR))

    assert moments == [NOON, NOON + HOUR, NOON + 2 * HOUR]
    assert bounded.after(NOON + 2 * HOUR) is None


def test_a_grid_begins_with_its_start_and_else_has_a_phase_of_its_own():
    started = rule("a", every="90s", starts=NOON)
    phases = {rule(f"{n}", every="1h").after(NOON) for n in range(50)}

    assert list(started.between(NOON - HOUR, NOON + 3 * MINUTE)) == [
        NOON, NOON + 1.5 * MINUTE, NOON + 3 * MINUTE,
    ]  # fmt: skip
    assert len(phases) > 45
    assert all(NOON < moment <= NOON + HOUR for moment in phases)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({}, "either cron="),
        ({"cron": "* * * * *", "every": "1m"}, "either cron="),
        ({"every": 0}, "at least one second, got 0"),
        ({"every": "-5s"}, "text such as '90s'"),
        ({"every": -5}, "must not be negative, got -5"),
        ({"every": "0.5s"}, "at least one second"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "'Mars/Olympus'"),
        ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "Europe/Paris"),
        ({"cron": "* * * * *", "timezone": ""}, "Europe/Paris"),
        ({"cron": "* * * * *", "timezone": None}, "Europe/Paris"),
        ({"cron": "* * * * *", "timezone": "America"}, "Europe/Paris"),
        ({"cron": "* * * * *", "jitter": -1}, "must not be negative"),
        ({"cron": "* * * * *", "gap": "shfit"}, "Did you mean 'shift'"),
        ({"cron": "* * * * *", "fold": "twice"}, "'first', 'second', 'both'"),
        ({"cron": "* * * * *", "starts": NOON, "ends": NOON - HOUR}, "before starts"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_value(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        rule("n", **said)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"overlap": "skpi"}, "Did you mean 'skip'"),
        ({"misfire": "never"}, "'coalesce', 'all', 'skip'"),
        ({"catch_up": -1}, "must not be negative"),
        ({"catch_up": 0}, "longer than nothing"),
        ({"expect": "soon"}, "text such as"),
        ({"retention": "0s"}, "longer than nothing"),
    ],
)
def test_policies_that_cannot_be_meant_are_refused(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        policies(**said)


def test_a_task_that_may_not_start_twice_skips_what_it_missed():
    assert policies(at_most_once=True).misfire == "skip"
