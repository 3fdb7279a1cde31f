"""The pages of series: which generation each key is at, and the runs that were superseded."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import NotThere, Visit
from django_once.models import Job, Series
from django_once.models.job import look

MOST: Final = 100
MOST_JOBS: Final = 50


def show(visit: Visit) -> Shown:
    """Show the series by their keys, page by page; a text is the beginning of a key."""
    text, after = visit.said("q"), visit.said("after")
    rows = Series.objects.using(visit.database).filter(backend__in=visit.aliases)
    if text:
        rows = rows.filter(key__startswith=text)
    if after:
        rows = rows.filter(key__gt=after)
    found = list(rows.order_by("key", "backend")[: MOST + 1])
    present = Job.objects.using(visit.database).defer(*look.HEAVY)
    jobs = present.in_bulk([one.job for one in found[:MOST] if one.job is not None])
    context = {
        "series": [(one, jobs.get(one.job) if one.job else None) for one in found[:MOST]],
        "text": text, "further": found[MOST - 1].key if len(found) > MOST else "",
    }  # fmt: skip
    return Shown("series", "Series", "once/series.html", context, head="once/series_head.html")


def show_one(visit: Visit, id: UUID) -> Shown:
    """Show one series: its generations, the last first."""
    one = Series.objects.using(visit.database).filter(pk=id).first()
    if one is None:
        raise NotThere("There is no such series in this database.")
    jobs = Job.objects.using(visit.database).defer(*look.HEAVY)
    # By id, which grows with time, so that no sort goes over all that the key ever had.
    found = list(jobs.filter(key=one.key, backend=one.backend).order_by("-pk")[: MOST_JOBS + 1])
    context = {"one": one, "jobs": found[:MOST_JOBS], "is_more": len(found) > MOST_JOBS,
               "most": MOST_JOBS}  # fmt: skip
    return Shown("series", f"Series {one.key}", "once/one_series.html", context)
