"""Eight claimers, half of them processes, on jobs that are settled, released, expired and retried.

What happened is told by a log that triggers write, not by the statements under test. With
ONCE_TEST_CROWD=20000 it takes minutes instead of seconds.
"""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from django_once import identity
from django_once.models import Job
from django_once.models.job.enqueue import enqueue_many
from django_once.models.job.expire import sweep
from django_once.models.job.ready import promote
from django_once.models.worker import expire
from tests.jobs import DATABASE, in_threads, new_job
from tests.races.claimer import Claimer, Process
from tests.races.witness import Change, breaches, seen, witness

pytestmark = [pytest.mark.engine, pytest.mark.races]

CROWD = int(os.environ.get("ONCE_TEST_CROWD", 400))
PATIENCE = 40 + CROWD / 40
READY, RUNNING, SUCCESSFUL = Job.READY, Job.RUNNING, Job.SUCCESSFUL


@pytest.mark.timeout(PATIENCE * 4)
@pytest.mark.django_db(transaction=True)
def test_each_job_is_held_by_one_attempt_at_a_time_and_has_one_outcome():
    jobs = [(identity.job_id(), "[]", "{}") for _ in range(CROWD)]
    for priority in range(3):
        enqueue_many(DATABASE, new_job(priority=priority), jobs[priority::3])

    with witness():
        notes = run_the_crowd()
        changes = seen()

    claims = [change for change in changes if change.is_claim]
    ends = [change for change in changes if change.ends_attempt]
    kept = [note for note in notes if note.was_kept]
    assert breaches(changes) == []
    # Whatever was claimed was given to one claimer, and to no other.
    given = Counter((note.job, note.claim, note.fence) for note in notes)
    assert given == Counter((one.job, one.claim, one.fence) for one in claims)
    # Each attempt was ended by its claimer, who was told so, or by a sweep, which took its nonce.
    assert Counter((note.job, note.claim, note.status) for note in kept) == Counter(
        (one.job, one.claim, one.status) for one in ends if one.claim
    )
    swept = [one for one in ends if not one.claim]
    assert len(claims) == len(kept) + len(swept) == len(ends)
    outcomes = Counter(one.job for one in ends if one.status != READY)
    assert outcomes == dict.fromkeys((id.hex for id, _, _ in jobs), 1)
    assert swept, "Nothing was swept, so nothing raced the sweep."
    print(
        f"{CROWD} jobs, {len(claims)} attempts, {len(swept)} swept, {len(notes) - len(kept)} late"
    )


def run_the_crowd():
    processes = [Process(seed, PATIENCE) for seed in range(4)]
    is_over = threading.Event()
    try:
        for process in processes:
            process.is_ready()
        answers = in_threads(
            lambda: keep_house(is_over),
            lambda: run_all(processes, is_over),
            timeout=PATIENCE * 2,
        )
    finally:
        for process in processes:
            process.clear_away()
    return answers[1]


def keep_house(is_over):
    """Declare workers lost, take what they held, and give due jobs their place, all the time."""
    while not is_over.is_set():
        expire(DATABASE)
        sweep(DATABASE, 50)
        promote(DATABASE, 50)
        is_over.wait(0.002)


def run_all(processes, is_over):
    """Let the processes and as many threads run to their end; return the notes of all."""
    waits = [lambda process=process: process.notes(PATIENCE * 2) for process in processes]
    runs = [lambda seed=seed: Claimer(seed, PATIENCE).run() for seed in range(4, 8)]
    try:
        return [note for notes in in_threads(*waits, *runs, timeout=PATIENCE * 2) for note in notes]
    finally:
        is_over.set()


READY_TO_RUNNING = Change("a", READY, RUNNING, None, "1", 0, 1)
TO_SUCCESS = Change("a", RUNNING, SUCCESSFUL, "1", "1", 1, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([READY_TO_RUNNING, TO_SUCCESS], ""),
        ([READY_TO_RUNNING, Change("a", RUNNING, RUNNING, "1", "2", 1, 2)], "two attempts"),
        ([Change("a", READY, RUNNING, None, "1", 0, 0)], "did not grow"),
        ([READY_TO_RUNNING, TO_SUCCESS, TO_SUCCESS], "was not seen"),
        ([READY_TO_RUNNING, Change("a", RUNNING, READY, "1", "2", 1, 1)], "another nonce"),
        (
            [READY_TO_RUNNING, TO_SUCCESS, Change("a", SUCCESSFUL, RUNNING, "1", "2", 1, 2)],
            "had ended",
        ),
        (
            [
                READY_TO_RUNNING,
                Change("a", RUNNING, READY, "1", "1", 1, 1),
                Change("a", READY, RUNNING, "1", "1", 1, 2),
            ],
            "served twice",
        ),
    ],
)
def test_the_witness_would_tell(changes, said):
    found = breaches(changes)

    assert bool(found) == bool(said)
    assert said in "".join(found)
