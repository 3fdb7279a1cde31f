"""`once metrics`: the figures that Prometheus reads, for a collector of text files, or to look."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_once.contrib.prometheus.families import families
from django_once.contrib.prometheus.text import written
from django_once.contrib.prometheus.views import measured
from django_once.management.places import OK, add_backend, places
from django_once.management.screen import Screen

WATCHES: Final = True


def add_arguments(parser: CommandParser) -> None:
    """Declare whose figures."""
    add_backend(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Print the figures."""
    # They refuse what is no backend of ours, and a database that is away.
    places(options["backend"])
    screen.out.write(written(families(measured(options["backend"]))), ending="")
    return OK
