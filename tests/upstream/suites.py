"""The suites: whose tests they are, where in their source they lie, and what they are run on.

The backport publishes a source without its tests. It promises Django's contract,
so it is held to Django's newest tests, with its own names put in.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """Tests of the contract in one source, and the Django they are run on."""

    name: str
    project: str
    series: str
    folder: str
    django: str
    is_for_backport: bool = False


SUITES = {
    suite.name: suite
    for suite in (
        Suite("django-6.1", "django", "6.1", "tests/tasks", django="6.1"),
        Suite("django-6.0", "django", "6.0", "tests/tasks", django="6.0"),
        Suite("backport", "django", "6.1", "tests/tasks", django="5.2", is_for_backport=True),
    )
}
