"""A plugin of pytest: skips what cannot apply, each test with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.upstream.pgpubsub.exclusions import EXCLUSIONS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    names = {item: item.nodeid.partition("::")[2].partition("[")[0] for item in items}
    for item, name in names.items():
        if name in EXCLUSIONS:
            item.add_marker(pytest.mark.skip(reason=EXCLUSIONS[name]))
    idle = set(EXCLUSIONS) - set(names.values())
    if idle:
        raise pytest.UsageError(f"exclusions.py names what is not there: {', '.join(sorted(idle))}")
