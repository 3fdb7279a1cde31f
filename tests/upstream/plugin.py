"""A plugin of pytest: skips what cannot apply, each test with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.upstream.exclusions import exclusions_of
from tests.upstream.suites import SUITES


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--upstream", choices=SUITES, help="whose exclusions hold")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    exclusions = exclusions_of(SUITES[config.getoption("--upstream")])
    for item in items:
        name = "::".join(item.nodeid.split("::")[1:])
        reason = exclusions.get(name) or exclusions.get(item.path.parent.name + "/" + name)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
