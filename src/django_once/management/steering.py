"""What the shell and the admin do alike: retry, and wake whoever may run it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django_once.backend import DatabaseBackend
from django_once.models.job.again import retry
from django_once.wakeups.listen import announce


def retry_jobs(backends: Iterable[DatabaseBackend], database: str, ids: Sequence[UUID]) -> int:
    """Make these ended jobs ready and wake an idle worker; return how many had ended."""
    retried = retry(database, ids)
    for backend in backends:
        if retried and backend.settings.wakeup == "auto":
            announce(database, backend.alias, is_ready=True)
    return retried
