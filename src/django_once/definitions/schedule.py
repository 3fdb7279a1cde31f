"""A schedule as values: its rule in time, its policies, and what is to be done now.

Nothing here asks a clock or a database. `decide` is told what the row says and what time it is,
and returns a verdict for each due moment; whoever called it writes them down and acts.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from django_once import clock
from django_once.definitions import cron as crons
from django_once.definitions.cron import Cron
from django_once.definitions.moments import FOLDS, GAPS, Grid, Walls
from django_once.errors import InvalidOption, shortened

SKIP, QUEUE_ONE, QUEUE_ALL, ALLOW = "skip", "queue_one", "queue_all", "allow"
OVERLAPS: Final = (SKIP, QUEUE_ONE, QUEUE_ALL, ALLOW)
COALESCE, ALL = "coalesce", "all"
MISFIRES: Final = (COALESCE, ALL, SKIP)

# Why a due moment did not run.
OVERLAP, COALESCED, MISSED, PAUSED = "overlap", "coalesced", "missed", "paused"
DISABLED, REFUSED, NOT_UNIQUE = "disabled", "refused", "not_unique"
# What waits for the run before it.
QUEUED: Final = "queued"

LONGEST_NAME: Final = 255
SHORTEST_EVERY: Final = timedelta(seconds=1)
SHORTEST_CATCH_UP: Final = timedelta(minutes=5)
LONGEST_CATCH_UP: Final = timedelta(days=1)
# With misfire="skip", what is later than this was missed.
ON_TIME: Final = timedelta(seconds=60)
# One transaction decides no more than this of one schedule; the rest comes with the next.
MOST_AT_ONCE: Final = 500
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
RETENTION: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule is due: instants in UTC, each strictly after the one before."""

    name: str
    cron: Cron | None
    every: timedelta | None
    zone: ZoneInfo
    starts: datetime | None = None
    ends: datetime | None = None
    jitter: timedelta = timedelta(0)
    gap: str = ""
    fold: str = ""

    def after(self, moment: datetime) -> datetime | None:
        """Return the first due moment after this instant, or None when there is none."""
        if self.starts is not None and moment < self.starts:
            moment = self.starts - timedelta(microseconds=1)
        found = self._instants.after(moment)
        if found is None or (self.ends is not None and found > self.ends):
            return None
        return found

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the due moments after the one instant and not after the other."""
        moment = self.after(after)
        while moment is not None and moment <= until:
            yield moment
            moment = self.after(moment)

    def fires_at(self, due_at: datetime) -> datetime:
        """Return when to act on a due moment: later by the jitter of its day, always the same."""
        if not self.jitter:
            return due_at
        drawn = _drawn(f"{self.name}:{due_at:%Y-%m-%d}")
        return due_at + self.jitter * (drawn % 1_000_000) / 1_000_000

    @property
    def _instants(self) -> Walls | Grid:
        if self.cron is not None:
            return Walls(self.cron, self.zone, self.gap, self.fold)
        assert self.every is not None
        # Without a start each name has a phase of its own, so that not all begin together.
        return Grid(self.every, self.starts or BEGINNING + _phase(self.name, self.every))

    def in_words(self) -> str:
        """Return what the rule means, for people."""
        if self.cron is not None:
            return f"{self.cron.in_words()} ({self.zone.key})"
        return f"Every {self.every}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What becomes of firings that are late, meet another, or do not succeed."""

    overlap: str = SKIP
    misfire: str = COALESCE
    catch_up: timedelta | None = None
    expect: timedelta | None = None
    # None keeps the records for ever.
    retention: timedelta | None = RETENTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A schedule as code declares it."""

    name: str
    task: str
    rule: Rule
    policies: Policies
    timezone: str
    args: str = "[]"
    kwargs: str = "{}"
    queue: str = "default"
    priority: int = 0
    backend: str = "default"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one due moment, or of all of them through another, when they are too many."""

    due_at: datetime
    reason: str = ""
    through: datetime | None = None

    @property
    def runs(self) -> bool:
        """Whether a run comes of it: now, or when the one before it has ended."""
        return self.reason in ("", QUEUED)


@dataclass(frozen=True, slots=True)
class Pause:
    """A time in which due moments are recorded and do not run; without an end it lasts."""

    since: datetime
    until: datetime | None = None

    def holds(self, moment: datetime) -> bool:
        """Return whether this moment falls into the pause."""
        return self.since <= moment and (self.until is None or moment < self.until)


@dataclass(frozen=True, slots=True)
class Decision:
    """All verdicts on a schedule now, and the due moment that comes after them."""

    verdicts: tuple[Verdict, ...]
    next_due_at: datetime | None


def decide(
    rule: Rule, policies: Policies, next_due_at: datetime, now: datetime, *,
    pause: Pause | None = None, open_runs: int = 0,
) -> Decision:  # fmt: skip
    """Return what becomes of every due moment from the next one until now.

    `open_runs` is how many runs have not ended: they run, or wait for their turn.
    """
    long_ago, first = _long_ago(rule, policies, next_due_at, now)
    due, following = _due(rule, first, now)
    held = {moment for moment in due if pause is not None and pause.holds(rule.fires_at(moment))}
    free = [moment for moment in due if moment not in held]
    has_more = following is not None and rule.fires_at(following) <= now
    if has_more and following is not None and pause is not None:
        has_more = not pause.holds(rule.fires_at(following))
    late = _misfires(rule, policies, free, now, has_more=has_more)
    verdicts = [Verdict(moment, PAUSED) for moment in held]
    verdicts += _overlaps(policies.overlap, late, open_runs)
    verdicts.sort(key=lambda one: one.due_at)
    return Decision((*long_ago, *verdicts), following)


def _long_ago(
    rule: Rule, policies: Policies, next_due_at: datetime, now: datetime
) -> tuple[list[Verdict], datetime | None]:
    """Return one verdict for all that was due before anybody keeps a record of it, and the rest."""
    kept = max(RETENTION, policies.retention or RETENTION, policies.catch_up or RETENTION)
    horizon = now - kept
    if next_due_at >= horizon:
        return [], next_due_at
    return [Verdict(next_due_at, MISSED, through=horizon)], rule.after(horizon)


def _due(
    rule: Rule, first: datetime | None, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """Return the moments to act on now, at most so many, and the one that comes after them."""
    due: list[datetime] = []
    moment = first
    while moment is not None and len(due) < MOST_AT_ONCE and rule.fires_at(moment) <= now:
        due.append(moment)
        moment = rule.after(moment)
    return due, moment


def _misfires(
    rule: Rule, policies: Policies, due: list[datetime], now: datetime, *, has_more: bool
) -> list[Verdict]:
    """Return which of these moments run, as far as their lateness says."""
    if not due:
        return []
    if policies.misfire == SKIP:
        window = policies.catch_up if policies.catch_up is not None else ON_TIME
    else:
        window = policies.catch_up if policies.catch_up is not None else _period(rule, due)
    verdicts = [
        Verdict(moment, MISSED if now - rule.fires_at(moment) > window else "") for moment in due
    ]
    if policies.misfire != COALESCE:
        return verdicts
    last = len(verdicts) - 1
    return [
        replace(one, reason=COALESCED) if one.runs and (n < last or has_more) else one
        for n, one in enumerate(verdicts)
    ]


def _period(rule: Rule, due: list[datetime]) -> timedelta:
    """Return how late a moment may run unless the schedule says: one period, within bounds."""
    following = rule.after(due[-1])
    period = following - due[-1] if following is not None else LONGEST_CATCH_UP
    return min(max(period, SHORTEST_CATCH_UP), LONGEST_CATCH_UP)


def _overlaps(overlap: str, verdicts: list[Verdict], open_runs: int) -> list[Verdict]:
    """Return the verdicts as far as runs that have not ended allow them."""
    if overlap == ALLOW:
        return verdicts
    decided = []
    for one in verdicts:
        reason = one.reason
        if one.runs:
            if (open_runs and overlap == SKIP) or (open_runs > 1 and overlap == QUEUE_ONE):
                reason = OVERLAP
            else:
                reason = QUEUED if open_runs else ""
                open_runs += 1
        decided.append(replace(one, reason=reason))
    return decided


def _drawn(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@lru_cache(maxsize=65536)
def _phase(name: str, every: timedelta) -> timedelta:
    microseconds = every // timedelta(microseconds=1)
    return timedelta(microseconds=_drawn(name) % microseconds)


def rule(
    name: str, *, cron: Any = None, every: Any = None, timezone: Any = "UTC",
    starts: datetime | None = None, ends: datetime | None = None, jitter: Any = 0,
    gap: Any = "", fold: Any = "",
) -> Rule:  # fmt: skip
    """Return a rule, or refuse what cannot be meant with the value and the remedy."""
    if (cron is None) == (every is None):
        raise InvalidOption(
            f"Schedule {shortened(name)} needs a rule: say either cron='0 2 * * *' or every='30s'."
        )
    begin = clock.moment(starts, "starts") if starts is not None else None
    end = clock.moment(ends, "ends") if ends is not None else None
    if begin is not None and end is not None and end < begin:
        raise InvalidOption(f"ends must not be before starts, got {ends} and {starts}.")
    _one_of(gap, ("", *GAPS), "gap")
    _one_of(fold, ("", *FOLDS), "fold")
    return Rule(
        name=name,
        cron=crons.read(cron, name) if cron is not None else None,
        every=_every(every) if every is not None else None,
        zone=zone(timezone),
        starts=begin,
        ends=end,
        jitter=clock.duration(jitter or 0, "jitter"),
        gap=gap,
        fold=fold,
    )


def policies(
    *, overlap: Any = None, misfire: Any = None, catch_up: Any = None, expect: Any = None,
    retention: Any = RETENTION, at_most_once: bool = False,
) -> Policies:  # fmt: skip
    """Return policies, or refuse them; a task that must not run late or twice skips what it missed.

    Whoever wants every missed moment to run wants them one after the other.
    """
    misfire = misfire or (SKIP if at_most_once else COALESCE)
    overlap = overlap or (QUEUE_ALL if misfire == ALL else SKIP)
    return Policies(
        overlap=_one_of(overlap, OVERLAPS, "overlap"),
        misfire=_one_of(misfire, MISFIRES, "misfire"),
        catch_up=_length(catch_up, "catch_up"),
        expect=_length(expect, "expect"),
        retention=_length(retention, "retention"),
    )


def checked_name(value: Any) -> str:
    """Return a schedule's name, or refuse it."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME:
        raise InvalidOption(
            f"A schedule's name has 1 to {LONGEST_NAME} characters, got {shortened(value)}."
        )
    if not value.isprintable():
        raise InvalidOption(f"A schedule's name can be printed, got {shortened(value)}.")
    return value


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return a time zone by its name in the IANA database, or refuse it."""
    try:
        return ZoneInfo(name)
    # A directory, a path out of the database, a file that holds no zone.
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise InvalidOption(
            f"timezone must be a name such as 'Europe/Paris', got {shortened(name)}: this host's "
            "database of time zones has no such zone. Correct it, or install the package tzdata."
        ) from error


def _every(value: Any) -> timedelta:
    length = clock.duration(value, "every")
    if length < SHORTEST_EVERY:
        raise InvalidOption(f"every must be at least one second, got {shortened(value)}.")
    return length


def _length(value: Any, name: str) -> timedelta | None:
    if value is None:
        return None
    length = clock.duration(value, name)
    if not length:
        raise InvalidOption(f"{name} must be longer than nothing, got {shortened(value)}.")
    return length


def _one_of(value: Any, known: tuple[str, ...], name: str) -> str:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(repr(one) for one in known if one)
        raise InvalidOption(f"{name} must be one of {listed}, got {shortened(value)}.{meant}")
    return str(value)
