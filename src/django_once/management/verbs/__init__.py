"""The verbs of `manage.py once`, in the order in which help shows them.

Each is a module with a HELP, `add_arguments(parser)` and `run(screen, options)`, which returns the
exit status.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from django_once.management.verbs import (
    cancel,
    explain,
    jobs,
    lock,
    locks,
    pause,
    prune,
    resume,
    retry,
    scheduler,
    schedules,
    show,
    status,
    verify,
    worker,
    workers,
)

VERBS: Final[dict[str, ModuleType]] = {
    "worker": worker,
    "scheduler": scheduler,
    "status": status,
    "jobs": jobs,
    "show": show,
    "explain": explain,
    "workers": workers,
    "schedules": schedules,
    "verify": verify,
    "locks": locks,
    "lock": lock,
    "pause": pause,
    "resume": resume,
    "retry": retry,
    "cancel": cancel,
    "prune": prune,
}
