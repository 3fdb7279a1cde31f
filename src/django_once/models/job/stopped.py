"""What stands against a job by its task: a strike, an open breaker, a budget that is used up.

Each answer is whether the condition holds of this job, a sentence, and the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from django_once import payload
from django_once.models.job.row import Job
from django_once.models.strike import Strike
from django_once.models.strike.stop import covers, strikes
from django_once.models.tally import Tally
from django_once.models.tally.count import counted, sums

Answer: TypeAlias = tuple[bool, str, dict[str, Any]]


def struck(job: Job, arguments: Mapping[str, Any] | None) -> Answer:
    """Return whether a strike keeps it from starting; of unknown arguments nobody can say."""
    found = strikes(str(job._state.db), [job.backend], [job.task])
    of_it = [one for one in found if _is_of(one, job, arguments)]
    if of_it:
        return False, _said(of_it[0]), _evidence(of_it[0])
    if found and arguments is None:
        says = (
            f"{_said(found[0])}; whether this job has these arguments is seen by the worker that "
            "takes it"
        )
        return False, says, _evidence(found[0])
    if job.blocked_by:
        return False, "a strike that is over put it aside; it is let go within a minute", {}
    return True, "its task is struck, for other arguments than its own", {}


def broken(job: Job, now: datetime) -> Answer:
    """Return whether the breaker of its task keeps it from starting."""
    tally = _tally(job, Tally.BREAKER)
    if tally is None or tally.opened_at is None or tally.reopens_at is None:
        return False, "a breaker that is closed put it aside; it is let go within a minute", {}
    evidence = {
        "task": job.task, "opened_at": tally.opened_at, "reopens_at": tally.reopens_at,
        "trial": str(tally.trial) if tally.trial else None,
    }  # fmt: skip
    if tally.trial == job.pk:
        is_due = now >= tally.reopens_at
        return is_due, f"it is the trial of its task's open breaker, at {at(tally.reopens_at)}", (
            evidence
        )  # fmt: skip
    trial = f" with job {tally.trial}" if tally.trial else ""
    says = (
        f"the breaker of task {job.task!r} is open since {at(tally.opened_at)}; it is tried{trial} "
        f"at {at(tally.reopens_at)}"
    )
    return False, says, evidence


def beyond_budget(job: Job, now: datetime) -> Answer:
    """Return why a retry waits for the budget of its task."""
    tally = _tally(job, Tally.BUDGET)
    if tally is None:
        return False, "a budget that is no more put it aside; it is let go within a minute", {}
    rule = payload.decode(tally.rule)
    attempts, retries = sums(counted(payload.decode(tally.counts), now, rule["within"]))
    says = (
        f"the retry budget of task {job.task!r} is used up: {retries} retries among {attempts} "
        f"attempts in {rule['within']:g} s, where {rule['share']:.0%} may be, and {rule['least']} "
        "always"
    )
    return False, says, {"task": job.task, "attempts": attempts, "retries": retries, **rule}


def at(moment: datetime | None) -> str:
    """Return a moment as it stands in a sentence."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "an unknown moment"


def _is_of(strike: Strike, job: Job, arguments: Mapping[str, Any] | None) -> bool:
    if job.blocked_by and strike.pk == job.reason:
        return True
    return not job.blocked_by and arguments is not None and covers(strike, arguments)


def _said(strike: Strike) -> str:
    whose = f" with {strike.arguments}" if strike.arguments != "{}" else ""
    who = f" by {strike.struck_by}" if strike.struck_by else ""
    why = f": {strike.reason}" if strike.reason else ""
    return f"task {strike.task!r}{whose} was struck{who}{why}"


def _evidence(strike: Strike) -> dict[str, Any]:
    return {
        "task": strike.task, "arguments": payload.decode(strike.arguments),
        "outcome": strike.outcome, "struck_by": strike.struck_by, "struck_at": strike.struck_at,
        "reason": strike.reason,
    }  # fmt: skip


def _tally(job: Job, kind: str) -> Tally | None:
    rows = Tally.objects.using(str(job._state.db))
    return rows.filter(backend=job.backend, kind=kind, task=job.task).first()
