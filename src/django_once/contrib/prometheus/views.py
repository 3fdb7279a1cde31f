"""The view that a collector asks."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_once import checks
from django_once.contrib.prometheus.families import families
from django_once.contrib.prometheus.text import CONTENT_TYPE, written
from django_once.models.metrics import Measured, measure


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the figures of all backends of ours; 503 where a database does not answer."""
    try:
        text = written(families(measured(None)))
    except (DatabaseError, InterfaceError):
        return HttpResponse("# A database of jobs did not answer.\n", CONTENT_TYPE, status=503)
    return HttpResponse(text, CONTENT_TYPE)


def measured(alias: str | None) -> list[Measured]:
    """Return what is measured of one backend, or of all of ours, database by database."""
    by_database: dict[str, list[str]] = {}
    for backend in checks.ours():
        if alias in (None, backend.alias):
            by_database.setdefault(backend.database, []).append(backend.alias)
    return [measure(database, aliases) for database, aliases in by_database.items()]
