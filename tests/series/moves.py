"""What tests of series do: wish for jobs under a key, claim them, end them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django_once.models import Job, Series
from django_once.models.series import add as verbs
from django_once.models.series.add import Placed
from django_once.models.series.settle import settle_in_series
from django_once.sql.values import Attempt, Next, Outcome
from tests.jobs import DATABASE, a_worker, an_entry, claim, ending, new_job

KEY = "poll:7"


def wish(**said: Any) -> Any:
    return new_job(**{"key": KEY, **said})


def add(**said: Any) -> Placed:
    return verbs.add(DATABASE, wish(**said))


def replace(while_running: str = verbs.SUPERSEDE, **said: Any) -> Placed:
    return verbs.replace(DATABASE, wish(**said), while_running)


def stop(key: str = KEY) -> int:
    return verbs.stop(DATABASE, "default", key)


def claimed(job: UUID) -> Attempt:
    """Claim what is ready until this job is among it."""
    (attempt,) = [one for one in claim(a_worker()) if one.id == job]
    return attempt


def series(key: str = KEY) -> Series:
    return Series.objects.using(DATABASE).get(backend="default", key=key)


def waiting(key: str = KEY) -> list[Job]:
    jobs = Job.objects.using(DATABASE).filter(key=key, status=Job.READY)
    return list(jobs.order_by("generation"))


def the_waiting(key: str = KEY) -> Job:
    (job,) = waiting(key)
    return job


def succeed(attempt: Attempt, **wish_for_next: Any) -> bool:
    return end(attempt, status=Job.SUCCESSFUL, return_value="null", ran=0.0, **wish_for_next)


def fail(attempt: Attempt, **wish_for_next: Any) -> bool:
    return end(
        attempt, status=Job.FAILED, reason="raised", entry=an_entry(attempt), failed=True, ran=0.0,
        **wish_for_next,
    )  # fmt: skip


def try_again(attempt: Attempt, delay: float = 0.0) -> bool:
    return end(
        attempt, status=Job.READY, reason="raised", entry=an_entry(attempt), failed=True, ran=0.0,
        delay=delay,
    )  # fmt: skip


def give_back(attempt: Attempt) -> bool:
    return end(attempt, status=Job.READY, given_back=True)


def end(attempt: Attempt, **said: Any) -> bool:
    """End an attempt under its key; return whether it was still held."""
    for_next = {name: said.pop(name) for name in ("at", "after", "stops", "args") if name in said}
    outcome: Outcome = ending(
        attempt, key=KEY, next=Next(**for_next) if for_next else None, **said
    )  # fmt: skip
    return not settle_in_series(DATABASE, [outcome])
