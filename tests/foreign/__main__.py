"""Delivers one permit eight times to eight workers of each backend, and counts what began."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

STANDING = {"databases": {}, "options": {}, "receivers": False}


def main() -> int:
    """Make a database, play each backend, and return the exit code."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.foreign.settings"
    os.environ.setdefault("ONCE_TEST_PROCESSES", json.dumps(STANDING))
    with tempfile.TemporaryDirectory(prefix="once-foreign-") as place:
        os.environ["ONCE_TEST_STARTS"] = str(Path(place) / "starts")
        import django

        django.setup()
        from django.test.runner import DiscoverRunner

        from tests.foreign.plays import played

        runner = DiscoverRunner(verbosity=0, interactive=False)
        databases = runner.setup_databases()
        try:
            return played(Path(place))
        finally:
            runner.teardown_databases(databases)


if __name__ == "__main__":
    sys.exit(main())
