"""The address of the figures, to be included."""

from __future__ import annotations

from django.urls import path

from django_once.contrib.prometheus.views import metrics

urlpatterns = [path("", metrics, name="once_metrics")]
