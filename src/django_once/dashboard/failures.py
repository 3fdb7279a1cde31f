"""The page of failures: the last of them put together by their error, each group to be retried."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django_once import sql
from django_once.dashboard import filters, jobs
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import Job
from django_once.models.job import look
from django_once.redaction import shown
from django_once.sql import samples
from django_once.sql.samples import MOST_GROUPED, Failing
from django_once.sql.values import CANCELLED, SUPERSEDED

# Ends that people or keys decided: nothing went wrong there.
DECIDED: Final = (CANCELLED, SUPERSEDED)
MOST: Final = 50
LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Group:
    """Failures that are alike, what the last of them said, and the filter that means them all."""

    failing: Failing
    says: str
    last: UUID | None
    text: str


def show(visit: Visit) -> Shown:
    """Show the groups of the last failures, the largest first."""
    with_all = bool(visit.said("all"))
    found = samples.failures(sql.on(visit.database), visit.aliases, () if with_all else DECIDED)
    groups = [_group(visit, one) for one in found[:MOST]]
    looked_at = sum(one.jobs for one in found)
    context = {
        "groups": groups, "with_all": with_all, "looked_at": looked_at,
        "is_more": looked_at >= MOST_GROUPED, "left_out": max(0, len(found) - MOST),
    }  # fmt: skip
    return Shown("failures", "Failures", "once/failures.html", context)


def _group(visit: Visit, failing: Failing) -> Group:
    text = filters.written(
        state=look.FAILED, task=failing.task, reason=failing.reason, error=failing.error,
        backend=failing.backend if len(visit.aliases) > 1 else "",
    )  # fmt: skip
    page = jobs.window(visit, filters.parse(text, visit.now)).page(1)
    rows = Job.objects.using(visit.database).filter(pk__in=page.ids)
    job = rows.defer("return_value").first()
    return Group(failing, _said(job) if job else "", job.pk if job else None, text)


def _said(job: Job) -> str:
    """Return the last line of a job's last traceback: what its exception said."""
    try:
        entries = json.loads(job.history)
        lines = str(entries[-1]["traceback"] or "").strip().splitlines()
    except (ValueError, LookupError, TypeError):
        return ""
    return shown(job).text(lines[-1] if lines else "")[:LONGEST]
