"""The tests' settings with the backends of others: RQ on Redis, and a table of jobs."""

from __future__ import annotations

import os

from tests.processes.settings import *  # noqa: F403
from tests.processes.settings import INSTALLED_APPS, TASKS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.foreign", "django_rq", "django_tasks_db"]
RQ_QUEUES = {"once-tests": {"URL": os.environ.get("ONCE_TEST_REDIS_URL", "")}}
TASKS = {
    **TASKS,
    "rq": {"BACKEND": "django_tasks_rq.RQBackend", "QUEUES": ["once-tests"]},
    "table": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []},
}
