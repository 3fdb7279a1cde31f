"""Series in real workers: they go on whatever dies, and a replaced body is told to end."""

from __future__ import annotations

import os
import random
import signal
from itertools import pairwise
from time import monotonic, sleep

import pytest

from django_once.models import Job, Progress, Series
from tests.processes.tasks import beat, beat_slowly, tell, tick
from tests.processes.workers import ended, job, on_one_database, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

BEATS = int(os.environ.get("ONCE_TEST_BEATS", "40"))
# So many series of one second each, for so long, and a process dies so often.
TICKS = int(os.environ.get("ONCE_TEST_TICKS", "30"))
SECONDS = float(os.environ.get("ONCE_TEST_TICKS_SECONDS", "8"))
KILLS_EVERY = float(os.environ.get("ONCE_TEST_TICKS_KILL", "3"))
# A few seconds with a death in them say nothing about a share, and a minute does.
LEAST_SHARE = 0.95 if SECONDS >= 60 else 0.5


def generations(ledger, name: str) -> list[int]:
    return [int(tag.split("-")[1]) for tag in ledger.tags() if tag.startswith(f"{name}-")]


def is_whole(key: str) -> bool:
    """Return whether a series has one job that waits or runs, and it is the present one."""
    series = Series.objects.get(key=key)
    open_ones = Job.objects.filter(key=series.key, status__in=(Job.READY, Job.RUNNING))
    return [one.id for one in open_ones] == [series.job]


def test_a_run_that_kills_its_process_is_followed_by_the_next(start, ledger):
    start().ready()

    first = beat.add("a", dies_at=2)
    until(lambda: {1, 2, 3, 4} <= set(generations(ledger, "a")), what="the fourth beat")
    beat.cancel("a")

    ran = generations(ledger, "a")
    assert ran[:4] == [1, 2, 3, 4]
    killed = Job.objects.get(key="beat:a", generation=2)
    assert (killed.status, killed.reason) == (Job.FAILED, "died")
    assert job(first).status == Job.SUCCESSFUL


def test_a_body_that_is_replaced_is_told_to_end_and_names_nothing(start, ledger, gate):
    start("--concurrency", "2").ready()
    old = beat_slowly.add(str(gate))
    until(lambda: ledger.count("began", "slow") == 1, what="the first body")

    new = beat_slowly.replace(str(gate))
    until(lambda: ledger.count("began", "slow") == 2, what="the second body")
    until(lambda: ledger.count("asked", "slow") == 1, what="the first to be told")
    ended(old)
    gate.touch()
    ended(new)

    (waits,) = Job.objects.filter(key="slow", status=Job.READY)
    assert (waits.generation, Series.objects.get(key="slow").job) == (3, waits.id)
    assert abs((waits.due_at - job(new).finished_at).total_seconds() - 7200) < 60


def test_many_series_lose_no_beat_and_double_none_while_workers_are_killed(start, ledger):
    names = [f"s{n}" for n in range(BEATS)]
    command = start("--processes", "2").ready(workers=2)
    for name in names:
        beat.add(name)

    dice = random.Random(7)
    for turn in range(1, 6):
        until(lambda t=turn: ledger.count("ran") > t * 3 * BEATS, 60, "more beats")
        send(signal.SIGKILL, dice.choice(until(lambda: command.workers, what="a worker")))
    until(lambda: all(is_whole(f"beat:{name}") for name in names), what="whole series")
    command.stop()

    for name in names:
        assert is_whole(f"beat:{name}")
        ran = generations(ledger, name)
        series = Series.objects.get(key=f"beat:{name}")
        rows = {one.generation: one for one in Job.objects.filter(key=series.key)}
        assert sorted(rows) == list(range(1, series.generation + 1))
        # Who was killed before its first line has died all the same, and was followed.
        unsaid = set(range(1, series.generation)) - set(ran)
        assert {rows[generation].reason for generation in unsaid} <= {"died"}, name
        planned = list(
            Job.objects.filter(key=series.key, generation__gt=1)
            .order_by("generation")
            .values_list("run_after", flat=True)
        )
        assert on_the_grid(planned, 0.2), name


def on_the_grid(planned, every: float) -> bool:
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(planned)]
    return all(gap > 0 and abs(gap / every - round(gap / every)) < 1e-6 for gap in gaps)


@on_one_database
def test_series_of_a_second_keep_their_moments_while_workers_are_killed(start):
    options = {"RETENTION": {"SUCCESSFUL": "20s", "FAILED": "20s"}}
    command = start("--processes", "2", options=options).ready(workers=2)
    began = {}
    for n in range(TICKS):
        began[f"tick:s{n}"] = monotonic()
        tick.add(f"s{n}")

    most, dice, until_then = 0, random.Random(11), monotonic() + SECONDS
    while monotonic() < until_then:
        sleep(KILLS_EVERY)
        send(signal.SIGKILL, dice.choice(until(lambda: command.workers, what="a worker")))
        most = max(most, Job.objects.count())
    until(lambda: all(is_whole(key) for key in began), what="whole series")
    lasted = {key: monotonic() - then for key, then in began.items()}
    shares = {key: (Series.objects.get(key=key).generation - 1) / lasted[key] for key in began}
    command.stop()

    print(f"\n{TICKS} series, moments run: {min(shares.values()):.3f} at the least, ", end="")
    print(f"{sum(shares.values()) / TICKS:.3f} in the mean, {most} rows at the most")
    for key, share in shares.items():
        assert is_whole(key)
        assert LEAST_SHARE <= share <= 1.1, (key, share)
        kept = Job.objects.filter(key=key, generation__gt=1).order_by("generation")
        assert on_the_grid(kept.values_list("run_after", flat=True), 1.0), key
    # What is kept are the ends of the last seconds, what waits, and what the next pruning takes.
    assert most <= TICKS * (1 + 20 + 40)


def test_progress_is_seen_while_the_body_runs(start, ledger, gate):
    start().ready()
    result = tell.enqueue(str(gate))

    told = until(lambda: Progress.objects.filter(job=result.id).first(), what="progress")
    gate.touch()
    ended(result)

    assert (told.done, told.total, told.message) == (3, 10, "three of ten")
