"""The plan of faults: the same for the same seed, and only what can happen to a database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from chaos.plan import planned
from chaos.project.work.drawn import order
from chaos.wish import CRASHY, LATE, Wish, jobs_for

pytestmark = pytest.mark.tools
WISH = Wish(
    database="postgresql", seconds=600, seed=7, mixture=CRASHY, jobs=50_000, lease=5.0,
    density=1.0, asked=1.0,
)  # fmt: skip


def test_a_seed_draws_the_same_faults_and_another_draws_others():
    assert planned(WISH) == planned(replace(WISH))
    assert planned(WISH) != planned(replace(WISH, seed=8))


def test_ten_minutes_of_the_long_form_bring_what_is_promised_of_them():
    counts = Counter(fault.what for fault in planned(WISH))
    longer = [one for one in planned(WISH) if one.what == "stop" and one.seconds > WISH.lease]

    assert counts["kill"] >= 100
    assert counts["server"] >= 10
    assert len(longer) >= 20
    assert counts["cut"] >= 50


def test_both_mixtures_come_one_after_the_other_and_share_the_orders():
    wish = replace(WISH, mixture="both", jobs=jobs_for("postgresql", "both", 600))

    crashy, late = wish.acts

    assert (crashy.mixture, late.mixture) == (CRASHY, LATE)
    assert (crashy.first, crashy.last + 1, late.last) == (1, late.first, wish.jobs)


def test_a_file_meets_no_fault_of_servers():
    kinds = {fault.what for fault in planned(replace(WISH, database="sqlite", mixture="both"))}

    assert kinds == {"kill", "stop", "hold"}


def test_the_same_number_of_a_seed_is_the_same_work():
    one, other = (order(7, 12, LATE, 5.0, {"least": 1, "exactly": 1}, False) for _ in range(2))

    assert (one.kind, one.seconds, one.trips) == (other.kind, other.seconds, other.trips)


def test_late_bodies_run_about_as_long_as_a_lease():
    seconds = [order(7, number, LATE, 5.0, {"least": 1}, False).seconds for number in range(500)]
    long = [one for one in seconds if one > 0.2]

    assert 250 < len(long) < 350
    assert max(long) <= 10.0
