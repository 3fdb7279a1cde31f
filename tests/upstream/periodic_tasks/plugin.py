"""A plugin of pytest: skips what cannot apply, each test with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.upstream.periodic_tasks.exclusions import EXCLUSIONS, reason_for


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        reason = reason_for(item.nodeid)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
    names = {name for item in items for name in (item.nodeid.partition("::")[2], item.cls.__name__)}
    idle = set(EXCLUSIONS) - names
    if idle:
        raise pytest.UsageError(f"exclusions.py names what is not there: {', '.join(sorted(idle))}")
