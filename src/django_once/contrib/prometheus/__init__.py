"""Figures for Prometheus, without a library: a view, and the text that it answers with.

    urlpatterns = [path("metrics", include("django_once.contrib.prometheus.urls"))]

The view asks no permission, as exporters do not: leave it where only the collector comes, or wrap
it. It tells names of queues, tasks and schedules, and numbers; never an argument.
"""
