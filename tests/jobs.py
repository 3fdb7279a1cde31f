"""What tests of the engine do all the time, by the verbs that the loops use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from django_once import identity, payload
from django_once.models import Job
from django_once.models.job.claim import Walk
from django_once.models.job.enqueue import enqueue
from django_once.models.job.settle import settle
from django_once.models.worker import fresh_holder, register
from django_once.sql.values import Attempt, Holder, NewJob, Outcome

DATABASE = "default"


def new_job(**said: Any) -> NewJob:
    known = {
        "id": identity.job_id(), "backend": "default", "task": "tests.add", "args": "[]",
        "kwargs": "{}", "queue": "default", "priority": 0,
    }  # fmt: skip
    return NewJob(**{**known, **said})


def store(**said: Any) -> UUID:
    """Enqueue one job and return its id."""
    job = new_job(**said)
    enqueue(DATABASE, job)
    return job.id


def store_many(count: int, **said: Any) -> list[UUID]:
    return [store(**said) for _ in range(count)]


def a_worker(name: str = "ann", lease: timedelta = timedelta(hours=1), **known: Any) -> Holder:
    """Register a worker and return who it is."""
    holder = fresh_holder(name, known.pop("backend", "default"))
    register(DATABASE, holder, lease, **known)
    return holder


def claim(holder: Holder, most: int = 100, queues: Iterable[str] = ("*",)) -> list[Attempt]:
    """Take what is ready, from the beginning of every lane."""
    return Walk(DATABASE, holder, queues).claim(most)


def claim_one(holder: Holder | None = None) -> Attempt:
    (attempt,) = claim(holder or a_worker(), 1)
    return attempt


def success(attempt: Attempt, value: str = "null", **said: Any) -> Outcome:
    return ending(attempt, status=Job.SUCCESSFUL, return_value=value, ran=0.0, **said)


def failure(attempt: Attempt, **said: Any) -> Outcome:
    said = {"entry": an_entry(attempt), "failed": True, "reason": "raised", "ran": 0.0, **said}
    return ending(attempt, status=Job.FAILED, **said)


def another_try(attempt: Attempt, **said: Any) -> Outcome:
    said = {"entry": an_entry(attempt), "failed": True, "reason": "raised", "ran": 0.0, **said}
    return ending(attempt, status=Job.READY, **said)


def given_back(attempt: Attempt, **said: Any) -> Outcome:
    return ending(attempt, status=Job.READY, given_back=True, **said)


def ending(attempt: Attempt, **said: Any) -> Outcome:
    return Outcome(**{"id": attempt.id, "claim": attempt.claim, **said})


def an_entry(attempt: Attempt, message: str = "no") -> str:
    return payload.entry(
        "raised", ValueError(message), attempt=attempt.attempt, worker=attempt.worker_name,
        history_length=attempt.history_length,
    )  # fmt: skip


def settled(*outcomes: Callable[[Attempt], Outcome]) -> list[Attempt]:
    """Claim one job for each of these and end it so."""
    attempts = [claim_one() for _ in outcomes]
    settle(DATABASE, [make(one) for make, one in zip(outcomes, attempts, strict=True)])
    return attempts


def row(job: UUID) -> Job:
    return Job.objects.using(DATABASE).get(pk=job)


def history(job: UUID) -> list[Any]:
    return payload.decode(row(job).history)


def in_threads(*bodies: Callable[[], Any], timeout: float = 60) -> list[Any]:
    """Run these at the same time, each on a connection of its own; return what they returned."""
    barrier = threading.Barrier(len(bodies))
    answers: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []

    def run(number: int, body: Callable[[], Any]) -> None:
        try:
            connections[DATABASE].ensure_connection()
            barrier.wait(timeout)
            answers[number] = body()
        except BaseException as error:
            errors.append(error)
            barrier.abort()
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=(number, body)) for number, body in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive(), "A thread still waits for another: a deadlock."
    if errors:
        raise errors[0]
    return answers
