"""The guards of a backend's tasks: what their ends come to for breakers and retry budgets.

Only ends of tasks that have one are looked at. They are counted in the database right before they
are stored, so that a breaker is open before what failed can be claimed again.

What was claimed before a breaker opened would still start. So each process counts its own failures
as they happen, and what it had claimed until then goes back.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django_once import clock, declare, events
from django_once.backend import DatabaseBackend
from django_once.definitions import registry
from django_once.definitions.breaker import END, Breaker, RetryBudget
from django_once.models import Job
from django_once.models.tally import breaker, budget
from django_once.processes.ends import Ended
from django_once.sql.values import BUDGET, Attempt

# Runs a piece of work on the database, and returns whether it was answered.
Tried = Callable[[Callable[[], None]], Any]


class Guards:
    """The breakers and retry budgets of the tasks that this process knows."""

    def __init__(self, backend: DatabaseBackend) -> None:
        self.backend = backend
        self._breakers: dict[str, Breaker] = {}
        self._budgets: dict[str, RetryBudget] = {}
        for task in registry.tasks():
            said = declare.options_of(task)
            if "breaker" in said:
                self._breakers[task.module_path] = said["breaker"]
            if "retry_budget" in said:
                self._budgets[task.module_path] = said["retry_budget"]
        self._known: Counter[str] = Counter()
        self._opened_at: dict[str, float] = {}
        self._counting = threading.Lock()

    def note(self, ended: Ended) -> None:
        """Take notice of an end at once, in whatever thread it happened."""
        task = ended.attempt.task
        rule = self._breakers.get(task) if self._breakers else None
        if rule is None or ended.outcome is None or not ended.outcome.failed:
            return
        with self._counting:
            self._known[task] += 1
            if rule.share is None and self._known[task] >= rule.failures:
                self._opened_at[task] = clock.uptime()

    def refuses(self, attempt: Attempt, claimed_at: float) -> bool:
        """Return whether a breaker has opened since this job was claimed.

        Not what was claimed in the face of an open breaker: that is its trial.
        """
        if not self._opened_at or attempt.stopped_by:
            return False
        return claimed_at <= self._opened_at.get(attempt.task, -1.0)

    def judged(self, batch: list[Ended], tried: Tried) -> list[Ended]:
        """Count these ends, and return them as breakers and budgets leave them.

        Where the database does not answer they stay as they are.
        """
        guarded = self._breakers.keys() | self._budgets.keys()
        if not guarded:
            return batch
        by_task: dict[str, list[int]] = {}
        for place, ended in enumerate(batch):
            if ended.attempt.task in guarded and _is_end(ended):
                by_task.setdefault(ended.attempt.task, []).append(place)
        changed = list(batch)
        for task, places in by_task.items():
            if task in self._breakers:
                tried(lambda task=task, places=places: self._count(task, batch, places))  # type: ignore[misc]
            if task in self._budgets:
                tried(lambda task=task, places=places: self._charge(task, changed, places))  # type: ignore[misc]
        return changed

    def _count(self, task: str, batch: Sequence[Ended], places: Sequence[int]) -> None:
        said = self._breakers[task]
        rule = breaker.Rule(
            failures=said.failures, within=_seconds(said.within), reopen=_seconds(said.reopen),
            share=said.share,
        )  # fmt: skip
        ended = {batch[place].attempt.id: not _has_failed(batch[place]) for place in places}
        settings = self.backend.settings
        found = breaker.count(settings.database, self.backend.alias, task, rule, ended)
        with self._counting:
            self._known[task] = 0 if found.is_open else found.failures
            if found.is_open and found.change:
                self._opened_at[task] = clock.uptime()
        if found.change:
            events.breaker_changed(task, found.change, said.failures)

    def _charge(self, task: str, changed: list[Ended], places: Sequence[int]) -> None:
        said = self._budgets[task]
        rule = budget.Rule(share=said.share, within=_seconds(said.within), least=said.least)
        wanted = [place for place in places if _is_retry(changed[place])]
        settings = self.backend.settings
        allowed, _ = budget.charge(
            settings.database, self.backend.alias, task, rule, len(places), len(wanted)
        )
        for place in wanted[allowed:]:
            changed[place] = _beyond(changed[place], said.beyond)


def _beyond(ended: Ended, beyond: str) -> Ended:
    """Return the end of an attempt for whose retry there is no room."""
    assert ended.outcome is not None
    if beyond == END:
        outcome = ended.outcome._replace(status=Job.FAILED, reason=BUDGET, delay=0.0)
    else:
        outcome = ended.outcome._replace(blocked_by=BUDGET)
    return replace(ended, outcome=outcome)


def _is_end(ended: Ended) -> bool:
    """Return whether an attempt ran to an end: it returned, or it failed."""
    if ended.outcome is None:
        return ended.exception is None
    return ended.outcome.failed or ended.outcome.status == Job.SUCCESSFUL


def _has_failed(ended: Ended) -> bool:
    return ended.outcome is not None and ended.outcome.failed


def _is_retry(ended: Ended) -> bool:
    outcome = ended.outcome
    return outcome is not None and outcome.failed and outcome.status == Job.READY


def _seconds(length: Any) -> float:
    assert isinstance(length, timedelta)
    return length.total_seconds()
