"""Fixtures for pytest, found by its entry point; a project that names none of them pays nothing.

Importing this file imports no settings and no model: that happens in the fixture that a test asks
for. They stand on pytest-django's `db`, and work in transactional tests as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django_once.compat import AnyResult
    from django_once.testing import Clock


@pytest.fixture
def run_jobs(db: None) -> Callable[..., int]:
    """Return `django_once.testing.run_jobs`, in a test that may use the database."""
    from django_once import testing

    return testing.run_jobs


@pytest.fixture
def enqueued_jobs(db: None) -> Callable[..., list[AnyResult]]:
    """Return `django_once.testing.enqueued_jobs`, in a test that may use the database."""
    from django_once import testing

    return testing.enqueued_jobs


@pytest.fixture
def once_clock() -> Iterator[Clock]:
    """Return a clock to advance; after the test it is now again."""
    from django_once import testing

    with testing.moved_clock() as clock:
        yield clock
