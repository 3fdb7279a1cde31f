"""All that match: counted, agreed to, and done in batches that each come soon to an end.

One request works for some seconds and says how far it is; the page then asks for more, by itself
where JavaScript runs and by a button where not. What it must know travels with the page, signed. A
job that comes back meanwhile is not done twice: only what was there when it began is meant.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.http import HttpResponseRedirect

from django_once.dashboard import filters, jobs
from django_once.dashboard.acts import led_back
from django_once.dashboard.answers import Shown
from django_once.dashboard.filters import Filter, FilterError
from django_once.dashboard.visits import NotThere, Visit
from django_once.management.selection import counted
from django_once.management.steering import retry_jobs
from django_once.models import AuditEntry, audit
from django_once.models.job.cancel import cancel
from django_once.sql.windows import Clause, Place

SALT: Final = "django_once.dashboard.bulk"
VERBS: Final = {"retry": "Retried", "cancel": "Cancelled"}
MOST_COUNTED: Final = 100_000
MOST_READ: Final = 10_000
MOST_DECODED: Final = 1_000
BATCH: Final = 500
SECONDS: Final = 3.0
SECONDS_VALID: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Course:
    """How far an act on all that match has come."""

    verb: str
    text: str
    database: str
    actor: str
    begun: str
    total: int
    entry: int = 0
    after: str = ""
    looked_at: int = 0
    done: int = 0
    is_over: bool = False


def confirm(visit: Visit) -> Shown:
    """Show how many jobs are meant, and ask."""
    verb, text = visit.said("verb"), visit.said("q")
    meant = _meant(visit, verb, text, visit.now)
    total, is_more = _counted(visit, meant)
    context = {
        "verb": verb, "text": text, "total": total, "is_more": is_more, "may": visit.may_act,
        "back": visit.address("jobs", q=text),
    }  # fmt: skip
    title = f"{verb.capitalize()} all that match"
    return Shown("jobs", title, "once/confirm.html", context, is_live=False)


def go_on(visit: Visit) -> HttpResponseRedirect | Shown:
    """Begin, or go on for some seconds, and say how far it is."""
    signed = visit.request.POST.get("course", "")
    course = _known(visit, signed) if signed else _begun(visit)
    course = _worked(visit, course)
    if not course.is_over:
        audit.advance(visit.database, course.entry, course.done)
        context = {"course": course, "signed": signing.dumps(asdict(course), salt=SALT),
                   "left": max(0, course.total - course.looked_at)}  # fmt: skip
        return Shown("jobs", "Working", "once/working.html", context, is_live=False)
    others = course.looked_at - course.done
    left = (
        f" {counted(others).capitalize()} changed meanwhile, and were left alone." if others else ""
    )
    says = f"{VERBS[course.verb]} {counted(course.done)}.{left}"
    audit.end(visit.database, course.entry, says, course.done)
    return led_back(visit, bool(course.done) or not others, says)


def _begun(visit: Visit) -> Course:
    verb = visit.request.POST.get("verb", "")
    text = visit.request.POST.get("q", "").replace("\x00", "").strip()
    meant = _meant(visit, verb, text, visit.now)
    total, _ = _counted(visit, meant)
    entry = audit.begin(
        visit.database, actor=visit.actor, door=AuditEntry.DASHBOARD, act=verb, kind="jobs",
        about=filters.without_arguments(text),
    )  # fmt: skip
    return Course(verb, text, visit.database, visit.actor, visit.now.isoformat(), total, entry)


def _known(visit: Visit, signed: str) -> Course:
    try:
        said = signing.loads(signed, salt=SALT, max_age=SECONDS_VALID)
    except signing.BadSignature:
        raise NotThere(
            "That form was changed or is too old: nothing more was done. The audit log says how "
            "far it came."
        ) from None
    course = Course(**said)
    if course.database != visit.database or course.actor != visit.actor:
        raise NotThere("Somebody else began that, or in another database: begin anew.")
    return course


def _counted(visit: Visit, meant: Filter) -> tuple[int, bool]:
    """Return how many are meant, up to a bound that is lower where whole histories are read."""
    window = jobs.window(visit, meant)
    if meant.arguments:
        # Not by SQL, which does not know what a task hides: a count would tell it.
        page = window.page(MOST_DECODED)
        return len(_fitting(visit, meant, page)), page.edge is not None
    reads_much = any(clause.field == "error" for clause in meant.clauses)
    return window.count(MOST_READ if reads_much else MOST_COUNTED)


def _worked(visit: Visit, course: Course) -> Course:
    """Do one batch after the other for some seconds."""
    begun = datetime.fromisoformat(course.begun)
    meant = _meant(visit, course.verb, course.text, begun)
    clauses = (*meant.clauses, Clause("until", (begun,)))
    window = jobs.window(visit, replace(meant, clauses=clauses))
    after = _place(course.after)
    until = time.monotonic() + SECONDS
    looked_at, done, is_over = course.looked_at, course.done, False
    while True:
        page = window.page(BATCH, after)
        ids = _fitting(visit, meant, page)
        looked_at, done = looked_at + len(ids), done + _changed(visit, course.verb, ids)
        after, is_over = page.edge, page.edge is None
        if is_over or time.monotonic() > until:
            break
    return replace(course, after=jobs.written(after), looked_at=looked_at, done=done,
                   is_over=is_over)  # fmt: skip


def _fitting(visit: Visit, meant: Filter, page: Any) -> list[UUID]:
    if not meant.arguments:
        return list(page.ids)
    return [job.pk for job in jobs.in_order(visit.database, page) if meant.fits(job)]


def _changed(visit: Visit, verb: str, ids: Sequence[UUID]) -> int:
    if not ids:
        return 0
    if verb == "retry":
        return retry_jobs(visit.backends, visit.database, ids)
    answer = cancel(visit.database, ids)
    return answer.ended + answer.requested


def _meant(visit: Visit, verb: str, text: str, now: datetime) -> Filter:
    if verb not in VERBS:
        raise NotThere(f"There is no act {verb!r} on all that match.")
    try:
        meant = filters.parse(text, now, sees_arguments=visit.sees_payload)
    except FilterError as error:
        raise NotThere(f"The filter does not parse: {error.says}") from error
    if verb not in jobs.acts_for(meant):
        raise NotThere(
            f"To {verb} all that match, the filter must name states of which all can be: "
            f"{'state:failed' if verb == 'retry' else 'state:ready, state:open, …'}"
        )
    return meant


def _place(text: str) -> Place | None:
    return jobs.place(text) if text else None
