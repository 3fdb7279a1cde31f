"""The page of workers: who works, what each runs since when, and until when it is trusted."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import Job, Worker
from django_once.models.job import look
from django_once.models.worker import seen, state_of

ENDED_WITHIN: Final = timedelta(hours=1)
MOST: Final = 200
MOST_OF_ONE: Final = 8
MOST_JOBS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Told:
    """A worker, and what it runs."""

    worker: Worker
    state: str
    queues: list[str]
    jobs: list[Job]
    held: int
    lease: float
    knows: int

    @property
    def busy(self) -> int:
        """How many of its slots are busy; it claims some jobs ahead."""
        return min(self.held, self.worker.concurrency)

    @property
    def left_out(self) -> int:
        """How many of its jobs are not listed."""
        return self.held - len(self.jobs)


def show(visit: Visit) -> Shown:
    """Show the workers that live, and those that ended lately."""
    found = seen(visit.database, visit.aliases, ENDED_WITHIN)
    running = _running(visit)
    told = [_told(visit, worker, running[worker.pk]) for worker in found[:MOST]]
    living = [one for one in told if one.state in ("alive", "lapsed")]
    known = {one.worker.pk for one in told}
    context = {
        "living": living, "ended": [one for one in told if one not in living],
        "lost": sum(len(jobs) for worker, jobs in running.items() if worker not in known),
        "left_out": len(found) - len(told), "several": len(visit.backends) > 1,
        "concurrency": sum(one.worker.concurrency for one in living if one.state == "alive"),
        "held": sum(one.held for one in living),
    }  # fmt: skip
    return Shown("workers", "Workers", "once/workers.html", context)


def _running(visit: Visit) -> dict[UUID | None, list[Job]]:
    """Return what runs, by worker, as far as a page can show it."""
    jobs = Job.objects.using(visit.database).filter(look.in_state(look.RUNNING))
    light = jobs.only("pk", "task", "queue", "worker", "last_attempted_at", "attempt")
    found: dict[UUID | None, list[Job]] = defaultdict(list)
    for job in light[:MOST_JOBS]:
        found[job.worker].append(job)
    return found


def _told(visit: Visit, worker: Worker, jobs: list[Job]) -> Told:
    # What was claimed and has not begun stands behind what runs.
    jobs.sort(key=lambda job: (job.last_attempted_at is None, job.last_attempted_at or visit.now))
    left = (worker.leased_until - visit.now).total_seconds()
    return Told(
        worker, state_of(worker, visit.now), [str(one) for one in json.loads(worker.queues)],
        jobs[:MOST_OF_ONE], len(jobs), left, len(json.loads(worker.tasks)),
    )  # fmt: skip
