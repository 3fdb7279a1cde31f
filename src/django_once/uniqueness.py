"""Unique tasks at the door: what `enqueue` and `enqueue_many` return for a name that is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django_once import compat, events, results, terms
from django_once.results import Enqueued
from django_once.sql.values import NewJob


def enqueue(backend: Any, task: compat.AnyTask, job: NewJob, plain: tuple[Any, Any]) -> Any:
    """Store a unique job unless another has its name; return the result of the one that has it."""
    from django_once.models.job.unique import enqueue_unique

    wanted = terms.uniqueness_of(task)
    assert wanted is not None
    kept = enqueue_unique(backend.database, job, wanted.on_conflict)
    if kept.stored is None:
        if kept.disposition == "replaced":
            backend.announce(is_ready=True)
        return results.under_key(backend.get_result(str(kept.job)), kept.disposition)
    backend.announce(is_ready=kept.stored.is_ready)
    result = results.newly_enqueued(task, str(job.id), *plain, kept.stored.enqueued_at)
    results.under_key(result, kept.disposition)
    events.job_enqueued(type(backend), result)
    return result


def enqueue_many(
    backend: Any, task: compat.TaskOf[Any, Any], job: NewJob,
    members: Sequence[tuple[UUID, str, str]], own: Sequence[Mapping[str, Any]],
) -> Enqueued[Any, Any]:  # fmt: skip
    """Store those of these jobs whose name nobody has; return the results of those that have it."""
    from django_once.models.job.unique import enqueue_each_unique

    wanted = terms.uniqueness_of(task)
    assert wanted is not None
    kept = enqueue_each_unique(backend.database, job, members, own, wanted.on_conflict)
    backend.announce(is_ready=True)
    standing = [
        (one.job, args, kwargs) for one, (_, args, kwargs) in zip(kept, members, strict=True)
    ]
    enqueued: Enqueued[Any, Any] = Enqueued(task, None, standing, [one.disposition for one in kept])
    if events.enqueue_is_heard():
        for result, one in zip(enqueued, kept, strict=True):
            if one.disposition == "added":
                events.job_enqueued(type(backend), result)
    return enqueued
