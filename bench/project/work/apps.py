"""The app, under a label that no user's app has."""

from django.apps import AppConfig


class WorkConfig(AppConfig):
    """The bench's own app."""

    name = "bench.project.work"
    label = "once_bench_work"
