"""A project's addresses: Django's admin, the progress of jobs, and a page of the project's own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path

PAGE = (
    "<!DOCTYPE html><title>Import</title><link rel=icon href=/static/once/icon.svg>"
    "{% load once %}{% progress_bar job label='Import' %}"
)
POLICY = "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'"


def bar(request: HttpRequest, job: UUID) -> HttpResponse:
    return HttpResponse(Template(PAGE).render(RequestContext(request, {"job": job})))


def strict(answer: Any) -> Any:
    """A middleware under which a browser runs nothing that a page brings along itself."""

    def answered(request: HttpRequest) -> Any:
        response = answer(request)
        response["Content-Security-Policy"] = POLICY
        return response

    return answered


urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_once.dashboard.progress")),
    path("bar/<uuid:job>/", bar),
]
