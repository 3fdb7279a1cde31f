"""The dashboard as Django's admin serves it: addresses, permissions, and what stands in the way.

Each page asks for the permission to look, each act for the one to operate, on the server, whatever
a form or an address says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from django_once.dashboard import (
    acts,
    audit,
    bulk,
    channels,
    failures,
    job,
    jobs,
    locks,
    overview,
    queues,
    schedules,
    series,
    workers,
)
from django_once.dashboard.answers import Shown, answer
from django_once.dashboard.visits import NotThere, Visit, may_look, visit
from django_once.processes.preflight import unapplied

Show = Callable[..., Shown]
PAGES: Final[dict[str, tuple[str, Show]]] = {
    "changelist": ("", overview.show),
    "jobs": ("jobs/", jobs.show),
    "job": ("jobs/<uuid:id>/", job.show),
    "failures": ("failures/", failures.show),
    "schedules": ("schedules/", schedules.show),
    "schedule": ("schedules/<uuid:id>/", schedules.show_one),
    "queues": ("queues/", queues.show),
    "workers": ("workers/", workers.show),
    "locks": ("locks/", locks.show),
    "series": ("series/", series.show),
    "one_series": ("series/<uuid:id>/", series.show_one),
    "channels": ("channels/", channels.show),
    "audit": ("audit/", audit.show),
    "confirm": ("confirm/", bulk.confirm),
}


class DashboardAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The dashboard's door in an admin site."""

    def has_view_permission(self, request: HttpRequest, row: Any = None) -> bool:
        """Return whether this user may look."""
        return may_look(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether it stands in this user's index."""
        return may_look(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: there is nothing to add."""
        return False

    def has_change_permission(self, request: HttpRequest, row: Any = None) -> bool:
        """Refuse: acts have addresses of their own."""
        return False

    def has_delete_permission(self, request: HttpRequest, row: Any = None) -> bool:
        """Refuse: there is nothing to delete."""
        return False

    def get_urls(self) -> list[Any]:
        """Return the pages, and the acts."""
        wrap = self.admin_site.admin_view
        found = [
            path(route, wrap(require_safe(self._page(show))), name=f"once_dashboard_{name}")
            for name, (route, show) in PAGES.items()
        ]
        for name, act in (("act", acts.act), ("bulk", bulk.go_on)):
            view = wrap(require_POST(self._act(act)))
            route = f"{name}/<slug:verb>/" if name == "act" else f"{name}/"
            found.append(path(route, view, name=f"once_dashboard_{name}"))
        return found

    def _page(self, show: Show) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, **named: Any) -> HttpResponse:
            return self._answered(request, lambda here: show(here, **named))

        return view

    def _act(self, act: Callable[..., Any]) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, **named: Any) -> HttpResponse:
            def acted(here: Visit) -> Any:
                if not here.may_act:
                    raise PermissionDenied
                return act(here, **named)

            return self._answered(request, acted)

        return view

    def _answered(self, request: HttpRequest, show: Callable[[Visit], Any]) -> HttpResponse:
        here = visit(request, self.admin_site.name)
        if here is None:
            return self._said(request, None, _unconfigured())
        try:
            shown = show(here)
            if isinstance(shown, HttpResponseRedirect):
                return shown
            return self._said(request, here, shown)
        except NotThere as missing:
            return self._said(request, here, _missing(str(missing)))
        except (ProgrammingError, OperationalError, InterfaceError) as error:
            found = _unready(here, error)
            if found is None:
                raise
            return self._said(request, None, found)

    def _said(self, request: HttpRequest, here: Visit | None, shown: Shown) -> HttpResponse:
        response: HttpResponse = answer(request, self.admin_site, here, shown)
        if isinstance(response, HttpResponse) and hasattr(response, "render"):
            response.render()
        return response


def _unconfigured() -> Shown:
    says = (
        "No backend in TASKS is django_once.backend.DatabaseBackend, or its settings have errors: "
        "see what manage.py check says. Then background work shows up here."
    )
    steps = (
        'TASKS = {"default": {"BACKEND": "django_once.backend.DatabaseBackend"}}',
        "python manage.py check", "python manage.py migrate", "python manage.py once worker",
    )  # fmt: skip
    context = {"says": says, "steps": steps}
    return Shown("", "Background work", "once/start.html", context, is_live=False, status=503)


def _missing(says: str) -> Shown:
    return Shown("", "Not there", "once/missing.html", {"says": says}, is_live=False, status=404)


def _unready(here: Visit, error: Exception) -> Shown | None:
    """Return a page that says how to make the tables, if they are what is missing."""
    try:
        missing = unapplied(here.database)
    except (DatabaseError, InterfaceError):
        says = f"Database {here.database!r} cannot be reached: is it running?"
        context: dict[str, Any] = {"says": says, "steps": ()}
        return Shown("", "No database", "once/start.html", context, is_live=False, status=503)
    if not missing:
        return None
    option = "" if here.database == "default" else f" --database {here.database}"
    steps = (f"python manage.py migrate{option}", "python manage.py once worker")
    context = {"says": f"{missing[0].upper()}{missing[1:].partition('. ')[0]}.", "steps": steps}
    return Shown("", "Not yet set up", "once/start.html", context, is_live=False, status=503)
