"""Watching jobs from outside of them: has this one ended, were those that run asked to end."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django_once.errors import Cancelled, OnceError, Superseded
from django_once.models.job.row import Job


def has_ended(database: str, job: UUID) -> bool:
    """Return whether a job has ended, or is gone."""
    status = Job.objects.using(database).filter(pk=job).values_list("status", flat=True).first()
    return status not in (Job.READY, Job.RUNNING)


def asked_to_end(
    database: str, running: Collection[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], OnceError]:
    """Return which of these bodies, as (job, claim), should end, each with the reason.

    A plain read of a few rows by their keys. What it misses by a moment it finds the next time, and
    the statement that ends an attempt is guarded whatever was read here.
    """
    rows = Job.objects.using(database).filter(pk__in={job for job, _ in running})
    found = {job: rest for job, *rest in rows.values_list("pk", "claim", "cancel_requested_at")}
    asked: dict[tuple[UUID, UUID], OnceError] = {}
    for job, claim in running:
        held_under, cancel_requested_at = found.get(job, (None, None))
        if held_under != claim:
            asked[job, claim] = Superseded(
                f"Job {job} was taken from this attempt; its outcome will not be kept."
            )
        elif cancel_requested_at is not None:
            asked[job, claim] = Cancelled(f"Job {job} was cancelled while it ran.")
    return asked
