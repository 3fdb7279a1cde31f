"""The tests' settings for a command of its own process, on the databases of the test."""

from __future__ import annotations

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

for alias, changes in json.loads(os.environ["ONCE_TEST_SHELL"]).items():
    DATABASES[alias].update(changes)
