"""The seeder: begins the series that go on by themselves, and mends those that broke off."""

from __future__ import annotations

from typing import Any, Final

from django_once import events
from django_once.backend import DatabaseBackend
from django_once.models.notification import admit_overlooked
from django_once.models.series.seed import admit_forgotten, seed
from django_once.repeating import automatic_tasks
from django_once.wakeups.listen import announce

# The janitor rests for about half a minute between two rounds; this is asked before each.
SECONDS_BETWEEN_LOOKS: Final = 20.0


def look_after_series(backend: DatabaseBackend) -> None:
    """Seed the automatic series of a backend, and let go what waits for nobody."""
    database = backend.settings.database
    tasks: list[Any] = automatic_tasks(backend.alias)
    jobs = [backend.job_of_series(task, [], {}) for task in tasks]
    seeded = seed(database, jobs) if jobs else []
    for job in seeded:
        events.series_seeded(job.key, job.id)
    admitted = admit_forgotten(database, backend.alias) + admit_overlooked(database, backend.alias)
    if (seeded or admitted) and backend.settings.wakeup == "auto":
        announce(database, backend.alias, is_ready=True)
