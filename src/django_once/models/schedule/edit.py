"""Editing schedules: inserts that give way to what is there, and changes under the row's lock.

An edit raises the version, so whoever computed a due moment from the older words moves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F

from django_once.models.schedule.row import Schedule


def add_missing(database: str, schedules: Sequence[Mapping[str, Any]]) -> None:
    """Insert these schedules, but for those whose names are taken; two may do so at once."""
    rows = [Schedule(**said) for said in schedules]
    Schedule.objects.using(database).bulk_create(rows, ignore_conflicts=True)


def words_of(
    database: str, names: Collection[str], columns: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return these columns of the schedules with these names, by name."""
    rows = Schedule.objects.using(database).filter(name__in=names)
    return {row["name"]: row for row in rows.values("name", "pk", "source", "owner", *columns)}


def change(database: str, schedule: UUID, changes: Mapping[str, Any]) -> bool:
    """Write these columns and raise the version; the caller's transaction has locked the row."""
    return (
        Schedule.objects.using(database)
        .filter(pk=schedule)
        .update(**changes, version=F("version") + 1)
        == 1
    )


def count_run(database: str, schedule: UUID, at: datetime) -> None:
    """Count a run that a person asked for."""
    Schedule.objects.using(database).filter(pk=schedule).update(
        fired=F("fired") + 1, last_fired_at=at
    )


def evidence_of(database: str, schedule: UUID) -> datetime | None:
    """Return up to which moment the records of a schedule were deleted."""
    rows = Schedule.objects.using(database).filter(pk=schedule)
    return rows.values_list("evidence_from", flat=True).first()


def find(database: str, name: str) -> Schedule | None:
    """Return the schedule of this name."""
    return Schedule.objects.using(database).filter(name=name).first()


def every(database: str) -> list[Schedule]:
    """Return all schedules, the next to be due first; those that never will be at the end."""
    return list(
        Schedule.objects.using(database).order_by(F("fires_at").asc(nulls_last=True), "name")
    )
