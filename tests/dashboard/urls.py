"""A project's addresses: Django's admin, and the progress of jobs for its users."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_once.dashboard.progress")),
]
