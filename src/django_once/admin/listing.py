"""The list of jobs: one query that an index serves, whatever is asked of a large table.

The state, the end or the id leads through an index. What has none (queue, task, backend, reason)
is looked for among the first of those only, and the page says so when there are more. Counting
stops early too: nobody turns a hundred pages.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from django_once.admin.filters import AGES
from django_once.clock import Now
from django_once.models import Job
from django_once.models.job import look

PER_PAGE: Final = 100
MOST_LISTED: Final = 10_000
UNINDEXED: Final = ("backend", "queue", "task", "reason")
NAMED: Final = (*UNINDEXED, "state", "ended")


class FirstPages(Paginator):  # type: ignore[type-arg]
    """Counts so far and no further."""

    @cached_property
    def count(self) -> int:
        """How many there are, or MOST_LISTED where there are as many."""
        jobs: Any = self.object_list
        return int(jobs[:MOST_LISTED].count())


class Listing(ChangeList):
    """What a page of jobs shows."""

    # Where jobs are left out that nobody looked at.
    is_cut = False

    @property
    def is_full(self) -> bool:
        """Whether there may be more jobs than pages."""
        return bool(self.result_count >= MOST_LISTED)

    @property
    def most_listed(self) -> int:
        """How many jobs the pages hold at most."""
        return MOST_LISTED

    @property
    def most_looked_at(self) -> int:
        """How many jobs are looked at where no index leads to those that are meant."""
        return look.MOST_LOOKED_AT

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return the jobs that the address of the page asks for."""
        jobs = super().get_queryset(request, exclude_parameters)
        choices: list[Any] = self.filter_specs
        said = {choice.parameter_name: choice.value() for choice in choices}
        asked = {name: said[name] for name in NAMED if said.get(name)}
        return self._narrowed(jobs, asked, self.query.strip())

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return none: `get_queryset` orders, by what an index serves and nothing else."""
        return []

    def get_ordering_field_columns(self) -> dict[int, Any]:
        """Return none: no column can be clicked to sort by it."""
        return {}

    def get_results(self, request: HttpRequest) -> None:
        """Read one page."""
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.result_list[: self.list_per_page]

    def _narrowed(self, jobs: QuerySet[Job], asked: dict[str, str], text: str) -> QuerySet[Job]:
        state = asked.get("state", "")
        if not state and "reason" in asked:
            state = look.FAILED
        order = look.order_of(state or (look.FAILED if asked.get("ended") in AGES else ""))
        if state in look.STATES:
            jobs = jobs.filter(look.in_state(state))
        if asked.get("ended") in AGES:
            _, age = AGES[asked["ended"]]
            jobs = jobs.filter(finished_at__gte=Now() - age)
        found = look.with_id(text, jobs.db) if text else None
        if found is not None:
            # A word such as "feed" may be the beginning of an id, and a task's name as well.
            jobs_found = jobs.filter(found).order_by("-pk")
            if jobs_found.values_list("pk")[:1]:
                return jobs_found
        unindexed = Q(
            **{name: asked[name] for name in ("backend", "queue", "task") if name in asked}
        )
        if "reason" in asked:
            unindexed &= Q(reason=asked["reason"])
        if text:
            unindexed &= Q(task__icontains=text)
        if unindexed:
            jobs, self.is_cut = look.first_of(jobs, order, look.MOST_LOOKED_AT)
        return jobs.filter(unindexed).order_by(order, "-pk")
