"""How quickly jobs of a task end: what the bench asks, of a database that is its own."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Max, Min

from django_once.models.job.row import Job


def left(database: str, task: str) -> int:
    """Return how many jobs of a task have not ended."""
    return Job.objects.using(database).filter(task=task, finished_at=None).count()


def ended_last(database: str) -> datetime | None:
    """Return when the last job ended, or None where none has."""
    found: datetime | None = Job.objects.using(database).aggregate(last=Max("finished_at"))["last"]
    return found


def ended_per_second(database: str, task: str, since: datetime | None) -> float:
    """Return how many jobs of a task ended per second, from the first one after a moment on."""
    ended = Job.objects.using(database).filter(task=task, status=Job.SUCCESSFUL)
    if since is not None:
        ended = ended.filter(finished_at__gt=since)
    found = ended.aggregate(n=Count("pk"), first=Min("finished_at"), last=Max("finished_at"))
    if found["n"] < 2:
        return 0.0
    return float(found["n"] / max((found["last"] - found["first"]).total_seconds(), 0.001))
