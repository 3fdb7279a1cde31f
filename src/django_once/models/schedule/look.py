"""Looking at schedules: a page of them by name, and those with which something is wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db.models import Q

from django_once.clock import Now
from django_once.models.schedule.row import Schedule

# What is later than this was forgotten; before, a scheduler may be about to fire it.
LATE: Final = timedelta(seconds=60)


def listed(database: str, most: int, *, text: str = "", after: str = "") -> list[Schedule]:
    """Return so many schedules by their names, behind one of them, that this text is a part of."""
    found = Schedule.objects.using(database).filter(name__gt=after)
    if text:
        found = found.filter(Q(name__icontains=text) | Q(task__icontains=text))
    return list(found.order_by("name")[:most])


def with_id(database: str, schedule: UUID) -> Schedule | None:
    """Return the schedule of this id."""
    return Schedule.objects.using(database).filter(pk=schedule).first()


def late(database: str, most: int) -> list[tuple[Schedule, str]]:
    """Return schedules with which something is wrong, each with what that is."""
    schedules = Schedule.objects.using(database)
    broken = schedules.exclude(problem="").order_by("name")[:most]
    overdue = schedules.filter(expected_by__lt=Now(), enabled=True).order_by("expected_by")[:most]
    forgotten = schedules.filter(enabled=True, problem="", fires_at__lt=Now() - LATE)
    told = [(one, f"cannot fire: {one.problem}") for one in broken]
    told += [(one, "had no successful run in the time that was expected.") for one in overdue]
    told += [(one, "is overdue: does a worker or a scheduler run that knows its task?")
             for one in forgotten.order_by("fires_at")[:most]]  # fmt: skip
    return told[:most]
