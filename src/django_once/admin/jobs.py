"""The pages of jobs: a list, one job with all that is known of it, and two things to do.

Nothing is written here but by the verbs, which guard what they change. A job is never added,
edited or deleted by hand: it is enqueued, and pruning deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString

from django_once.admin import lines, places, text
from django_once.admin.filters import (
    BackendChoice,
    EndedChoice,
    QueueChoice,
    ReasonChoice,
    StateChoice,
    TaskChoice,
)
from django_once.admin.listing import MOST_LISTED, NAMED, PER_PAGE, FirstPages, Listing
from django_once.clock import Now
from django_once.management.screen import printable
from django_once.management.selection import counted
from django_once.management.steering import logged_in_admin, of_jobs, retry_jobs
from django_once.models import Job
from django_once.models.fields import Moment
from django_once.models.job import look
from django_once.models.job.cancel import cancel

RETRY: Final = "once.retry_job"
CANCEL: Final = "once.cancel_job"
PAYLOAD: Final = "once.view_payload"


class JobAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Looks at jobs, retries and cancels them."""

    list_display = (
        "state", "task_path", "attempts", "enqueued", "started", "finished", "queue", "priority",
        "worker_told", "id",
    )  # fmt: skip
    list_display_links = ("id", "task_path")
    list_filter = (
        StateChoice, BackendChoice, QueueChoice, EndedChoice, ReasonChoice, TaskChoice,
    )  # fmt: skip
    list_per_page = list_max_show_all = PER_PAGE
    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    search_fields = ("id",)
    search_help_text = "An id or its first four or more digits, or a part of a task's path."
    actions = ("retry_selected", "cancel_selected")

    class Media:
        css = {"all": ["once/admin.css"]}

    # Who may do what.

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: jobs are enqueued."""
        return False

    def has_change_permission(self, request: HttpRequest, job: Any = None) -> bool:
        """Refuse: only the verbs change jobs."""
        return False

    def has_delete_permission(self, request: HttpRequest, job: Any = None) -> bool:
        """Refuse: pruning deletes."""
        return False

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Return whether this user may retry jobs."""
        return request.user.has_perm(RETRY)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether this user may cancel jobs."""
        return request.user.has_perm(CANCEL)

    # Which jobs.

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[Listing]:
        """Return what makes a page of the list."""
        return Listing

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Job]:
        """Return the jobs of the database that is asked for, without what is heavy in them."""
        database = places.database_of(request)
        if database is None:
            return Job.objects.none()
        jobs = Job.objects.using(database).defer(*look.HEAVY)
        return jobs.annotate(now=models.ExpressionWrapper(Now(), output_field=Moment()))

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """Leave it to the list, which knows the indexes."""
        return queryset, False

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Refuse what the filters do not offer: else an address could ask for secrets letter by
        letter, as in `?kwargs__contains=`."""
        return lookup in NAMED

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the job of this id from wherever it is; without its payload if that is secret."""
        jobs = Job.objects.annotate(now=models.ExpressionWrapper(Now(), output_field=Moment()))
        if not request.user.has_perm(PAYLOAD):
            jobs = jobs.defer(*look.PAYLOAD)
        return places.found(jobs, object_id)

    # What can be done.

    @admin.action(description="Retry the selected jobs that have ended", permissions=["retry"])
    def retry_selected(self, request: HttpRequest, queryset: models.QuerySet[Job]) -> None:
        """Make them ready again, and tell how many."""
        chosen = self._chosen(request, queryset, "Retried.")
        ids = [job.pk for job in chosen]
        with logged_in_admin(queryset.db, request.user, "retry", "job", **of_jobs(ids)) as log:
            retried = retry_jobs(places.backends_in(queryset.db), queryset.db, ids)
            log.tell(f"{counted(retried)} retried.", retried)
        parts = [f"{counted(retried)} retried"]
        left = len(chosen) - retried
        if left:
            parts.append(f"{left:,} had not ended, or ran just now")
        self._tell(request, parts, is_well=not left)

    @admin.action(
        description="Cancel the selected jobs that have not ended", permissions=["cancel"]
    )
    def cancel_selected(self, request: HttpRequest, queryset: models.QuerySet[Job]) -> None:
        """End those that wait, ask those that run to end, and tell how many of each."""
        chosen = self._chosen(request, queryset, "Cancelled.")
        ids = [job.pk for job in chosen]
        with logged_in_admin(queryset.db, request.user, "cancel", "job", **of_jobs(ids)) as log:
            answer = cancel(queryset.db, ids)
            done = answer.ended + answer.requested
            log.tell(f"{counted(done)} cancelled or asked to end.", done)
        parts = [f"{counted(answer.ended)} cancelled"]
        if answer.requested:
            parts.append(f"{answer.requested:,} asked to end")
        if answer.busy:
            parts.append(f"{answer.busy:,} busy: a transaction holds them, try again")
        left = len(chosen) - answer.ended - answer.requested - answer.busy
        if left:
            parts.append(f"{left:,} had ended before")
        self._tell(request, parts, is_well=not (answer.busy or left))

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Do what a form asks for, which may have been made by hand."""
        if not places.are_ids(request.POST.getlist(ACTION_CHECKBOX_NAME)):
            self.message_user(request, "What was selected are no ids of jobs.", messages.ERROR)
            return None
        return super().response_action(request, *args, **kwargs)

    def _chosen(self, request: HttpRequest, jobs: models.QuerySet[Job], told: str) -> list[Job]:
        """Return the jobs that are meant, and write into the admin's log who meant them."""
        chosen = list(jobs.only("pk", "task", "status")[:MOST_LISTED])
        if chosen:
            user = cast(int, request.user.pk)
            LogEntry.objects.log_actions(user, chosen, CHANGE, told)
        return chosen

    def _tell(self, request: HttpRequest, parts: list[str], *, is_well: bool) -> None:
        level = messages.SUCCESS if is_well else messages.WARNING
        self.message_user(request, f"{', '.join(parts)}.", level)

    # One job's page.

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a job, and what this user may do with it."""
        job = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if job is not None and self.has_view_permission(request, job):
            listed = reverse(f"{self.admin_site.name}:once_job_changelist")
            context["once_address"] = f"{listed}?{urlencode({places.BACKEND: job.backend})}"
            context["once_verbs"] = list(self._verbs(request, job))
        return super().change_view(request, object_id, form_url, context)

    def _verbs(self, request: HttpRequest, job: Job) -> Iterator[tuple[str, str]]:
        """Yield what this user may do with it: the action, and the word on its button."""
        if job.backend not in {one.alias for one in places.backends_in(str(job._state.db))}:
            return
        has_ended = look.state_of(job) in look.HAVE_ENDED
        if has_ended and self.has_retry_permission(request):
            yield "retry_selected", "Retry"
        if not has_ended and self.has_cancel_permission(request):
            yield "cancel_selected", "Cancel"

    def get_fieldsets(self, request: HttpRequest, job: Any = None) -> Any:
        """Return what there is to say of a job; what it has no word for is left out."""
        if job is None:
            return []
        sections = lines.SECTIONS
        if request.user.has_perm(PAYLOAD):
            sections = (*sections, lines.PAYLOAD)
        kept = [(title, [line for line in told if line(job) != text.NOTHING])
                for title, told in sections]  # fmt: skip
        return [(title, {"fields": told}) for title, told in kept if told]

    def get_readonly_fields(self, request: HttpRequest, job: Any = None) -> Any:
        """Return all that is shown."""
        return flatten_fieldsets(self.get_fieldsets(request, job))

    # The columns of the list.

    @admin.display(description="state")
    def state(self, job: Any) -> SafeString:
        """Return where it stands."""
        return lines.state(job)

    @admin.display(description="task")
    def task_path(self, job: Any) -> str:
        """Return which task it runs."""
        return printable(job.task) or text.NOTHING

    @admin.display(description="attempt")
    def attempts(self, job: Any) -> str:
        """Return which attempt it is at, and how many it has."""
        return f"{job.attempt}/{job.max_attempts}"

    @admin.display(description="enqueued")
    def enqueued(self, job: Any) -> Any:
        """Return how long ago it was enqueued."""
        return text.moment(job.enqueued_at, job.now)

    @admin.display(description="started")
    def started(self, job: Any) -> Any:
        """Return how long ago it was first started."""
        return text.moment(job.started_at, job.now)

    @admin.display(description="finished")
    def finished(self, job: Any) -> Any:
        """Return how long ago it ended."""
        return text.moment(job.finished_at, job.now)

    @admin.display(description="worker")
    def worker_told(self, job: Any) -> str:
        """Return who holds it or ended it."""
        return printable(job.worker_name) or text.NOTHING
