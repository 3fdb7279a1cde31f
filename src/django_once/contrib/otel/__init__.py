"""Spans of OpenTelemetry for jobs: one where it is enqueued, one for each attempt, linked.

    INSTALLED_APPS = [..., "django_once", "django_once.contrib.otel"]

A job may run hours after its enqueue, and many times. So an attempt begins a trace of its own, and
its span is linked to that of the enqueue. What exports them is the project's: its TracerProvider.
Arguments, results and the texts of errors are in no span.
"""
