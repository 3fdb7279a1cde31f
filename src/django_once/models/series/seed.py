"""Seeding: the series that should always go on are begun where they never were, or broke off.

Any worker that knows such a task looks from time to time. One whose job waits or runs is left
alone, and so is one that somebody has stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django_once import sql
from django_once.models.series.add import add_unless_stopped
from django_once.sql.repeat import repeated
from django_once.sql.series import SeriesStatements
from django_once.sql.values import NewJob

BATCH = 500


def seed(database: str, jobs: Sequence[NewJob]) -> list[NewJob]:
    """Store those of these jobs whose key has none that waits or runs; return them."""
    statements = sql.on(database)
    series = SeriesStatements(statements)
    by_key = {job.key: job for job in jobs if job.key is not None}
    missing: list[NewJob] = []
    for backend in {job.backend for job in jobs}:
        keys = [key for key, job in by_key.items() if job.backend == backend]
        lacking = series.without_a_job(backend, keys)
        missing += [by_key[key] for key in keys if key in lacking]
    return [job for job in missing if add_unless_stopped(database, job)]


def admit_forgotten(database: str, backend: str) -> int:
    """Let jobs run that wait for a predecessor which does not run any more; count them."""
    statements = sql.on(database)
    return repeated(statements.connection, partial(_admit, SeriesStatements(statements), backend))


def _admit(series: SeriesStatements, backend: str) -> int:
    with series.statements.together():
        keys = series.forgotten(backend, BATCH)
        free = [stand.key for stand in series.lock_free(backend, keys)] if keys else []
        return series.admit(backend, free)
