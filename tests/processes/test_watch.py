"""What a supervisor decides about a worker that it only sees."""

from __future__ import annotations

from uuid import uuid4

import pytest

from django_once.processes.board import Started
from django_once.processes.watch import GRACE, NOTICE, next_look, verdict

LEASE = 60.0


def body(over_at: float = 0.0) -> Started:
    return Started(uuid4(), uuid4(), 0.0, over_at)


def test_a_body_without_a_timeout_may_run_for_ever():
    found = verdict([body()], seen_at=0, now=10_000, lease=LEASE)

    assert (found.is_condemned, found.is_death) == (False, False)


def test_a_body_past_its_timeout_condemns_its_worker_and_then_ends_it():
    late, other = body(over_at=100.0), body(over_at=200.0)

    in_time = verdict([late, other], seen_at=100, now=100.0, lease=LEASE)
    warned = verdict([late, other], seen_at=100, now=100.0 + NOTICE, lease=LEASE)
    ended = verdict([late, other], seen_at=100, now=100.0 + GRACE, lease=LEASE)

    assert (in_time.is_condemned, in_time.is_death) == (False, False)
    assert (warned.is_condemned, warned.is_death) == (True, False)
    assert (ended.is_condemned, ended.is_death, ended.overran) == (True, True, (late,))


def test_a_silent_worker_is_wedged_only_when_no_body_runs():
    idle = verdict([], seen_at=0, now=31, lease=LEASE)
    busy = verdict([body()], seen_at=0, now=31, lease=LEASE)
    recent = verdict([], seen_at=5, now=31, lease=LEASE)

    assert idle.is_death
    assert idle.overran == ()
    assert not busy.is_death
    assert not recent.is_death


def test_the_next_look_is_when_a_verdict_may_change():
    early = next_look([body(over_at=100.0)], now=99.0)
    late = next_look([body(over_at=100.0)], now=100.0 + NOTICE)

    assert early == pytest.approx(1.0 + NOTICE)
    assert late == pytest.approx(GRACE - NOTICE)
    assert next_look([body()], now=99.0) > 1
