"""`once scheduler`: fires schedules until stopped, and runs no job.

Workers do the same beside their jobs. This is for those who run foreign backends only, or who want
schedules fired by a process apart (`once worker --no-scheduler`).
"""

from __future__ import annotations

import math
import os
import signal
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connections

from django_once.management.places import USAGE
from django_once.management.screen import Screen
from django_once.processes.child import fork
from django_once.processes.scheduler import INTERVAL, Scheduler
from django_once.scheduling.readings import homes


def add_arguments(parser: CommandParser) -> None:
    """Declare how long it sleeps, and whose schedules it fires."""
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL,
        metavar="S",
        help="the longest sleep between two looks, in seconds",
    )
    parser.add_argument(
        "--database", default="", metavar="ALIAS", help="of this database alone (default: of all)"
    )


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Fire the schedules of each database until told to stop; return the exit status."""
    interval = options["interval"]
    if not (math.isfinite(interval) and interval > 0):
        raise CommandError(f"--interval must be seconds above 0, got {interval}.", returncode=USAGE)
    databases = [options["database"]] if options["database"] else homes()
    for database in databases:
        if database not in connections:
            raise CommandError(
                f"--database {database!r} is not among DATABASES: {', '.join(connections)}.",
                returncode=USAGE,
            )
    screen.tell(f"Firing the schedules of {', '.join(databases)}; stop with Ctrl-C.")
    if len(databases) == 1:
        return Scheduler(databases[0], interval).run()
    return _run_each(databases, interval)


def _run_each(databases: list[str], interval: float) -> int:
    """Fork a scheduler for each database; when one ends, all do."""
    pids = []
    for database in databases:
        loop = Scheduler(database, interval)
        pids.append(fork(loop.run))

    def stop(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    ended, status = os.wait()
    pids.remove(ended)
    stop()
    statuses = [status, *(os.waitpid(pid, 0)[1] for pid in pids)]
    return max(os.waitstatus_to_exitcode(one) for one in statuses)
