"""Looking and proving: the moments to come, and whether each that came has a record.

The audit walks the rule over a period and compares it with the records, so it finds what no
scheduler knows of: a moment without a record, two for one, or one that the rule does not name. It
goes back as far as the rule holds and the records are kept, and says so where that is not far
enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from django_once.definitions.moments import kind_of
from django_once.definitions.schedule import MISSED, Rule
from django_once.errors import InvalidOption
from django_once.models import Schedule, TaskExecution
from django_once.models.execution.look import Recorded, records_since
from django_once.models.schedule.due import as_due
from django_once.scheduling import readings

# What is later than this has been forgotten; before, a scheduler may be about to fire it.
LATE: Final = timedelta(seconds=60)
MOST: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A due moment to come: the instant, what the wall shows, and what the clock does then."""

    due_at: datetime
    wall: datetime
    kind: str
    fires_at: datetime


@dataclass(slots=True)
class Audit:
    """What a period held for one schedule."""

    name: str
    begin: datetime
    end: datetime
    is_whole: bool
    expected: int = 0
    fired: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    by_hand: int = 0
    missing: list[datetime] = field(default_factory=list)
    doubled: list[datetime] = field(default_factory=list)
    unexpected: list[datetime] = field(default_factory=list)
    problem: str = ""

    @property
    def is_balanced(self) -> bool:
        """Whether every moment has its one record, and every record its moment."""
        return not (self.missing or self.doubled or self.unexpected or self.problem)


def preview(schedule: Schedule, after: datetime, count: int) -> list[Upcoming]:
    """Return the next so many due moments of a schedule."""
    rule = readings.rule_of(as_due(schedule))
    return upcoming(rule, after, count)


def upcoming(rule: Rule, after: datetime, count: int) -> list[Upcoming]:
    """Return the next so many due moments of a rule."""
    found: list[Upcoming] = []
    moment = rule.after(after)
    while moment is not None and len(found) < count:
        wall = moment.astimezone(rule.zone)
        found.append(Upcoming(moment, wall, kind_of(moment, rule.zone), rule.fires_at(moment)))
        moment = rule.after(moment)
    return found


def verify(database: str, schedule: Schedule, since: datetime, now: datetime) -> Audit:
    """Return what a schedule's rule named since then, and what became of each moment."""
    floor = max(filter(None, (since, schedule.rule_since, schedule.evidence_from)))
    end = min(now, schedule.next_due_at or schedule.watermark or now)
    audit = Audit(schedule.name, floor, end, is_whole=floor == since)
    try:
        rule = readings.rule_of(as_due(schedule))
    except InvalidOption as problem:
        audit.problem = str(problem)
        return audit
    due = set(islice(rule.between(floor, end), MOST))
    if schedule.next_due_at is not None:
        due.discard(schedule.next_due_at)
    audit.expected = len(due)
    _compare(audit, due, records_since(database, schedule.pk, floor))
    if schedule.enabled:
        _add_late(audit, rule, schedule, now)
    return audit


def _compare(audit: Audit, due: set[datetime], known: Sequence[Recorded]) -> None:
    times = Counter(one.due_at for one in known)
    jobs = Counter(one.job for one in known if one.job is not None)
    seen: set[datetime] = set()
    for one in known:
        # One record may stand for many moments; those with a record of their own are not its.
        covered = {m for m in due if one.through and one.due_at < m <= one.through} - times.keys()
        seen |= covered | {one.due_at}
        audit.skipped[one.reason or MISSED] += len(covered)
        if one.due_at <= audit.begin:
            continue
        if one.kind == TaskExecution.MANUAL:
            audit.by_hand += 1
            continue
        if one.status == TaskExecution.SKIPPED:
            audit.skipped[one.reason] += 1
        else:
            audit.fired += 1
        if times[one.due_at] > 1 or (one.job is not None and jobs[one.job] > 1):
            audit.doubled.append(one.due_at)
        if one.kind == TaskExecution.BY_RULE and one.due_at not in due and one.due_at <= audit.end:
            audit.unexpected.append(one.due_at)
    audit.skipped = +audit.skipped
    audit.missing += sorted(due - seen)


def _add_late(audit: Audit, rule: Rule, schedule: Schedule, now: datetime) -> None:
    """Add what should have been decided long ago: no scheduler is at work, or none knows it."""
    if schedule.next_due_at is None:
        return
    first = schedule.next_due_at - timedelta(microseconds=1)
    late = [
        moment
        for moment in islice(rule.between(first, now), MOST)
        if rule.fires_at(moment) < now - LATE
    ]
    audit.expected += len(late)
    audit.missing += late
