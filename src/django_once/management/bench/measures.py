"""The measures of `once bench`: each yields figures, beside the same statements sent alone."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.core.management.base import CommandError

from django_once import identity
from django_once.backend import DatabaseBackend
from django_once.calls import Call
from django_once.management.bench.crew import workers
from django_once.management.bench.tasks import STARTED
from django_once.management.places import PROBLEM
from django_once.models import Job
from django_once.models.job.claim import Walk
from django_once.models.job.enqueue import enqueue, enqueue_many
from django_once.models.job.pace import ended_last, ended_per_second, left
from django_once.models.job.settle import settle
from django_once.models.worker import register
from django_once.sql.values import Attempt, Holder, NewJob, Outcome

BULK: Final = 1_000
BATCH: Final = 500
PATIENCE: Final = 60.0
# Longer than a worker goes on looking after it has found something.
REST: Final = 0.3


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; `alone` is what the statements alone reach, in the same unit."""

    name: str
    value: float
    unit: str
    alone: float | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: seconds of each way to enqueue, jobs of a drain, samples of a pickup."""

    seconds: float
    jobs: int
    samples: int


class Measures:
    """The measures of one backend that exists for them, with its two tasks."""

    def __init__(self, backend: DatabaseBackend, nothing: Any, tell: Any, scale: Scale) -> None:
        self.backend = backend
        self.nothing = nothing
        self.tell = tell
        self.scale = scale
        self.database = backend.database

    def all(self) -> Iterator[Figure]:
        """Yield each figure as it is there."""
        yield from self.enqueue()
        yield from self.drain()
        yield from self.pickup()

    def enqueue(self) -> Iterator[Figure]:
        """Yield jobs that commit one by one, and by the thousand."""
        alone = self._repeated(lambda n: enqueue(self.database, self._job(n)))
        reached = self._repeated(self.nothing.enqueue)
        yield Figure("enqueue, one per commit", reached, "jobs/s", alone)
        calls: list[Call] = [((n,), {}) for n in range(BULK)]
        members = [f"[{n}]" for n in range(BULK)]

        def many_alone(_: int) -> None:
            ids = identity.job_ids(BULK)
            rows = [(id, args, "{}") for id, args in zip(ids, members, strict=True)]
            enqueue_many(self.database, self._job(0), rows)

        alone = self._repeated(many_alone) * BULK
        reached = self._repeated(lambda _: self.nothing.enqueue_many(calls)) * BULK
        yield Figure(f"enqueue_many of {BULK:,}", reached, "jobs/s", alone)

    def drain(self) -> Iterator[Figure]:
        """Yield how quickly one worker process runs jobs that do nothing."""
        self._end_all()
        self._fill()
        began = time.monotonic()
        alone = self._end_all() / (time.monotonic() - began)
        self._fill()
        since, task = ended_last(self.database), self.nothing.module_path
        with workers(self.backend):
            self._await(lambda: not left(self.database, task))
        reached = ended_per_second(self.database, task, since)
        yield Figure("drain, 1 process", reached, "jobs/s", alone)

    def pickup(self) -> Iterator[Figure]:
        """Yield how long a job waits for a worker that has nothing to do."""
        reading, writing = os.pipe()
        try:
            with workers(self.backend):
                waits = [self._waited(n, reading, writing) for n in range(self.scale.samples + 2)]
        finally:
            os.close(reading)
            os.close(writing)
        # The first ones also waited for the workers to start.
        waits = sorted(1_000 * seconds for seconds in waits[2:])
        yield Figure("pickup by an idle worker, p50", waits[len(waits) // 2], "ms")
        yield Figure("pickup by an idle worker, p95", waits[int(len(waits) * 0.95)], "ms")

    def _waited(self, number: int, reading: int, writing: int) -> float:
        time.sleep(REST)
        self.tell.enqueue(number, writing)
        committed = time.monotonic()
        while True:
            ready, _, _ = select.select([reading], [], [], PATIENCE)
            if not ready:
                raise _tired("No worker took a job")
            told, at = STARTED.unpack(os.read(reading, STARTED.size))
            if told == number:
                return float(max(0.0, at - committed))

    def _repeated(self, work: Callable[[int], Any]) -> float:
        count, began = 0, time.monotonic()
        while time.monotonic() < began + self.scale.seconds:
            work(count)
            count += 1
        return count / (time.monotonic() - began)

    def _job(self, number: int) -> NewJob:
        task = self.nothing
        return NewJob(
            id=identity.job_id(), backend=self.backend.alias, task=task.module_path,
            args=f"[{number}]", kwargs="{}", queue=task.queue_name, priority=0,
        )  # fmt: skip

    def _fill(self) -> None:
        for begin in range(0, self.scale.jobs, BULK):
            count = min(BULK, self.scale.jobs - begin)
            self.nothing.enqueue_many([((n,), {}) for n in range(count)])

    def _end_all(self) -> int:
        """Claim and settle everything by the statements alone; return how many that were."""
        settings = self.backend.settings
        holder = Holder(uuid4(), "once-bench", self.backend.alias)
        register(self.database, holder, settings.lease)
        walk, ended = Walk(self.database, holder), 0
        until = time.monotonic() + PATIENCE
        while attempts := walk.claim(BATCH):
            settle(self.database, [_success(attempt) for attempt in attempts])
            ended += len(attempts)
            if time.monotonic() > until:
                raise _tired("To claim and settle jobs")
        return ended

    def _await(self, is_over: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not is_over():
            if time.monotonic() > until:
                raise _tired("A worker did not end its jobs")
            time.sleep(0.1)


def _success(attempt: Attempt) -> Outcome:
    return Outcome(
        id=attempt.id, claim=attempt.claim, status=Job.SUCCESSFUL, return_value="null", ran=0.0
    )


def _tired(what: str) -> CommandError:
    return CommandError(f"{what} within {PATIENCE:.0f} s: it is too busy.", returncode=PROBLEM)
