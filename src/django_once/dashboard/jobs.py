"""The page of jobs: one box to filter them, and a list that an index leads through."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django_once import sql
from django_once.dashboard import filters
from django_once.dashboard.answers import Shown
from django_once.dashboard.filters import Filter, FilterError
from django_once.dashboard.visits import Visit
from django_once.models import Job
from django_once.models.job import look
from django_once.sql.windows import WIDTH, Page, Place, Window

PER_PAGE: Final = 50
SHORTCUTS: Final = (
    ("all", ""), ("running", "state:running"), ("ready", "state:ready"),
    ("scheduled", "state:scheduled"), ("blocked", "state:blocked"), ("failed", "state:failed"),
    ("successful", "state:successful"),
)  # fmt: skip


def show(visit: Visit) -> Shown:
    """Show a page of the jobs that the filter means."""
    text = visit.said("q")
    said: dict[str, Any] = {
        "text": text, "shortcuts": SHORTCUTS, "words": filters.WORDS, "width": WIDTH,
        "may_retry": visit.may_act,
    }  # fmt: skip
    try:
        meant = filters.parse(text, visit.now, sees_arguments=visit.sees_payload)
    except FilterError as error:
        context = {**said, "error": error, "marked": marked(text, error), "rows": []}
        return Shown("jobs", "Jobs", "once/jobs.html", context, head="once/jobs_head.html",
                     is_live=False, status=400)  # fmt: skip
    after = place(visit.said("after"))
    page = window(visit, meant).page(PER_PAGE, after)
    rows = [job for job in in_order(visit.database, page) if meant.fits(job)]
    context = {
        **said, "rows": [(job, look.state_of(job)) for job in rows], "after": after,
        "further": written(page.edge), "is_full": len(rows) == PER_PAGE,
        "can": acts_for(meant),
    }  # fmt: skip
    return Shown("jobs", "Jobs", "once/jobs.html", context, head="once/jobs_head.html",
                 is_live=after is None)  # fmt: skip


def window(visit: Visit, meant: Filter) -> Window:
    """Return the window over what a filter means."""
    several = [alias for alias in visit.aliases if len(visit.aliases) > 1]
    return Window(sql.on(visit.database), several, meant.clauses)


def in_order(database: str, page: Page) -> list[Job]:
    """Return the jobs of a page, in its order; one that was deleted meanwhile is left out."""
    jobs = Job.objects.using(database).defer("return_value", "history")
    found = jobs.in_bulk(page.ids)
    return [found[id] for id in page.ids if id in found]


def acts_for(meant: Filter) -> tuple[str, ...]:
    """Return what may be done to all that a filter means, by the states it names."""
    states = meant.states()
    if not states:
        return ()
    if states <= set(look.HAVE_ENDED):
        return ("retry",)
    return ("cancel",) if not states & set(look.HAVE_ENDED) else ()


def marked(text: str, error: FilterError) -> tuple[str, str, str]:
    """Return a filter as what stands before a mistake, the mistake, and what stands behind it."""
    return text[: error.begin], text[error.begin : error.end] or " ", text[error.end :]


def written(place: Place | None) -> str:
    """Return a place as it stands in an address."""
    if place is None:
        return ""
    at = "" if place.moment is None else place.moment.isoformat()
    return f"{place.id}~{at}"


def place(text: str) -> Place | None:
    """Return the place that an address names; none where somebody changed it."""
    id, _, at = text.partition("~")
    try:
        return Place(UUID(id), datetime.fromisoformat(at) if at else None)
    except ValueError:
        return None


def address_of(text: str) -> str:
    """Return what an address says of a filter."""
    return urlencode({"q": text}) if text else ""
