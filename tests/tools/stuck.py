"""A pytest plug-in that never gets anywhere, for the test that interrupts a run."""

from __future__ import annotations

import time


def pytest_collection():
    time.sleep(60)
