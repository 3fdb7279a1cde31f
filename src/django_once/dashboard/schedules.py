"""The pages of schedules: what is due when, in both zones, and what became of what was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import NotThere, Visit
from django_once.errors import OnceError
from django_once.management.verbs.schedules import rule_in_words, state_of
from django_once.models import Schedule, TaskExecution
from django_once.models.schedule import look
from django_once.models.schedule.due import as_due
from django_once.scheduling import audit, readings

MOST: Final = 100
MOST_RECORDS: Final = 40
MOST_PREVIEWED: Final = 12
# How far back missed moments are looked for, if the rule does not name too many.
LOOKED_BACK: Final = timedelta(hours=24)
MOST_AUDITED: Final = 500


@dataclass(frozen=True, slots=True)
class Told:
    """A schedule, where it stands, and what its rule means."""

    schedule: Schedule
    state: str
    rule: str


def show(visit: Visit) -> Shown:
    """Show the schedules by name."""
    text, after = visit.said("q"), visit.said("after")
    found = look.listed(visit.database, MOST + 1, text=text, after=after)
    told = [Told(one, state_of(one, visit.now), rule_in_words(one)) for one in found[:MOST]]
    context = {"schedules": told, "text": text,
               "further": found[MOST - 1].name if len(found) > MOST else ""}  # fmt: skip
    return Shown("schedules", "Schedules", "once/schedules.html", context,
                 head="once/schedules_head.html")  # fmt: skip


def show_one(visit: Visit, id: UUID) -> Shown:
    """Show one schedule: its moments to come, and the records of those that came."""
    one = look.with_id(visit.database, id)
    if one is None:
        raise NotThere("There is no such schedule in this database: it was deleted.")
    rows = TaskExecution.objects.using(visit.database).filter(schedule=id)
    missed = _missed(visit, one)
    context: dict[str, Any] = {
        "told": Told(one, state_of(one, visit.now), rule_in_words(one)),
        "records": rows.order_by("-due_at")[:MOST_RECORDS], "coming": _coming(one, visit.now),
        "missed": missed, "skipped": [] if missed is None else sorted(missed.skipped.items()),
    }  # fmt: skip
    return Shown("schedules", one.name, "once/schedule.html", context)


def _coming(schedule: Schedule, now: datetime) -> list[audit.Upcoming]:
    try:
        return audit.preview(schedule, now, MOST_PREVIEWED)
    except (OnceError, ValueError):
        return []


def _missed(visit: Visit, schedule: Schedule) -> audit.Audit | None:
    """Return what lacks a record; None where the rule is broken or names too many moments."""
    since = visit.now - LOOKED_BACK
    try:
        rule = readings.rule_of(as_due(schedule))
        moment, moments = rule.after(since), 0
        while moment is not None and moment < visit.now:
            moments += 1
            if moments > MOST_AUDITED:
                return None
            moment = rule.after(moment)
        return audit.verify(visit.database, schedule, since, visit.now)
    except (OnceError, ValueError):
        return None
