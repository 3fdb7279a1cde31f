"""The app whose presence in INSTALLED_APPS makes the spans."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from django_once import tracing


class OnceOtelConfig(AppConfig):
    """Puts a tracer where jobs are followed."""

    name = "django_once.contrib.otel"
    label = "once_otel"
    verbose_name = "Traces of background work"

    def ready(self) -> None:
        """Follow every job from now on."""
        try:
            from django_once.contrib.otel.spans import Spans  # noqa: PLC0415 - the library is extra
        except ImportError as error:
            raise ImproperlyConfigured(
                "'django_once.contrib.otel' is among INSTALLED_APPS and needs OpenTelemetry: "
                f"pip install 'django-once[otel]' ({error})."
            ) from error
        tracing.follow(Spans())
