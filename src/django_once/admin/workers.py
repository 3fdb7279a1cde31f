"""The pages of workers: who works, since when, and until when it is trusted."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from django_once.admin import places, text
from django_once.admin.filters import BackendChoice, WorkerStateChoice
from django_once.admin.lines import column, moment
from django_once.clock import Now
from django_once.management.screen import length, printable
from django_once.models import Job, Worker
from django_once.models.fields import Moment
from django_once.models.job import look
from django_once.models.worker import state_of


@admin.display(description="state")
def state(worker: Any) -> SafeString:
    """Return where it stands."""
    word = state_of(worker, worker.now)
    return text.state(word, word)


@admin.display(description="lease")
def lease(worker: Any) -> str:
    """Return how long it is still trusted."""
    if worker.lost_at is not None or worker.stopped_at is not None:
        return text.NOTHING
    left = (worker.leased_until - worker.now).total_seconds()
    return length(left) if left > 0 else f"over for {length(-left)}"


@admin.display(description="jobs")
def jobs(worker: Any) -> str:
    """Return how many jobs it holds, and how many it may run at once."""
    return f"{worker.held or 0}/{worker.concurrency}"


@admin.display(description="queues")
def queues(worker: Any) -> str:
    """Return from which queues it takes."""
    return printable(", ".join(map(str, json.loads(worker.queues)))) or text.NOTHING


@admin.display(description="tasks it knows")
def tasks(worker: Any) -> SafeString | str:
    """Return the paths of the tasks that it can run."""
    return text.value(worker.tasks)


@admin.display(description="name")
def name(worker: Any) -> str:
    """Return what people call it."""
    return printable(worker.name) or str(worker.pk)


@admin.display(description="host")
def host(worker: Any) -> str:
    """Return on which machine it runs."""
    return printable(worker.host) or text.NOTHING


@admin.display(description="started")
def started(worker: Any) -> Any:
    """Return how long ago it started."""
    return text.moment(worker.started_at, worker.now)


@admin.display(description="ended")
def ended(worker: Any) -> Any:
    """Return how long ago it stopped or was declared lost."""
    return text.moment(worker.stopped_at or worker.lost_at, worker.now)


class WorkerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Looks at workers."""

    list_display = (name, state, host, "pid", queues, jobs, started, lease, ended, "version", "id")
    list_display_links = (name, "id")
    list_filter = (WorkerStateChoice, BackendChoice)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    ordering = ("-started_at",)

    class Media:
        css = {"all": ["once/admin.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: workers register themselves."""
        return False

    def has_change_permission(self, request: HttpRequest, worker: Any = None) -> bool:
        """Refuse: only the protocol changes workers."""
        return False

    def has_delete_permission(self, request: HttpRequest, worker: Any = None) -> bool:
        """Refuse: a worker without a row must stop."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Refuse what the filters do not offer."""
        return lookup in ("state", places.BACKEND)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Worker]:
        """Return the workers that are asked for."""
        database = places.database_of(request)
        if database is None:
            return Worker.objects.none()
        workers = _described(Worker.objects.using(database)).defer("tasks", "doing")
        asked = places.asked_backend(request)
        return workers.filter(backend=asked.alias) if asked else workers

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the worker of this id from wherever it is."""
        return places.found(_described(Worker.objects.all()), object_id)

    def get_fieldsets(self, request: HttpRequest, worker: Any = None) -> Any:
        """Return what there is to say of a worker."""
        if worker is None:
            return []
        told = (
            name, state, column("backend", "backend"), queues, jobs, host, column("pid", "pid"),
            column("version", "version"), column("supervisor", "supervisor"),
            moment("started", "started_at"), moment("renewed", "renewed_at"),
            moment("leased until", "leased_until"), moment("lost", "lost_at"),
            moment("stopped", "stopped_at"), tasks,
        )  # fmt: skip
        return [(None, {"fields": [line for line in told if line(worker) != text.NOTHING]})]

    def get_readonly_fields(self, request: HttpRequest, worker: Any = None) -> Any:
        """Return all that is shown."""
        return flatten_fieldsets(self.get_fieldsets(request, worker))


def _described(workers: models.QuerySet[Worker]) -> models.QuerySet[Worker]:
    """Return workers with the database's now, and how many jobs each holds."""
    running = Job.objects.filter(look.in_state(look.RUNNING), worker=models.OuterRef("pk"))
    held = running.order_by().values("worker").annotate(jobs=models.Count("pk")).values("jobs")
    return workers.annotate(
        now=models.ExpressionWrapper(Now(), output_field=Moment()), held=models.Subquery(held)
    )
