"""Our backend in the place of the two that Django's tests know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django_once.backend import DatabaseBackend
from django_once.compat import Task, TaskResult
from django_once.models import Job
from django_once.testing import run_jobs


class DrainedBackend(DatabaseBackend):
    """In ImmediateBackend's place: whatever is enqueued has run when its result is returned."""

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Store a job, run it, and return its result as it is then."""
        result = super().enqueue(task, args, kwargs)
        run_jobs(self.alias)
        result.refresh()
        return result


class StoringBackend(DatabaseBackend):
    """In DummyBackend's place: jobs are stored, and can be looked at and thrown away."""

    @property
    def results(self) -> list[TaskResult]:
        """The results of all jobs of this backend, the oldest first."""
        jobs = Job.objects.using(self.settings.database).filter(backend=self.alias)
        ids = jobs.order_by("enqueued_at", "id").values_list("id", flat=True)
        return [self.get_result(str(id)) for id in ids]

    def clear(self) -> None:
        """Remove all jobs of this backend."""
        Job.objects.using(self.settings.database).filter(backend=self.alias).delete()
