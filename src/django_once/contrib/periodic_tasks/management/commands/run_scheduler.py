"""`run_scheduler`: fires schedules until stopped, as django-periodic-tasks calls it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from django_once.management.commands import once
from django_once.management.verbs import scheduler
from django_once.processes.scheduler import INTERVAL


class Command(once.Command):
    """Does what `once scheduler` does."""

    help = "Fire schedules until stopped; the same as `once scheduler`."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the interval, whose default is PERIODIC_TASKS_SCHEDULER_INTERVAL if it is set."""
        scheduler.add_arguments(parser)
        interval = getattr(settings, "PERIODIC_TASKS_SCHEDULER_INTERVAL", INTERVAL)
        parser.set_defaults(interval=float(interval))

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run that verb."""
        return super().execute(*args, **{**options, "verb": "scheduler"})
