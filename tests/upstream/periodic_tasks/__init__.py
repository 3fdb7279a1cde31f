"""The own tests of django-periodic-tasks, run against our schedules through a mapping of names.

    python -m tests.upstream --suite periodic-tasks

mapping.py says under which of our words each of its names goes, exclusions.py which of its tests
cannot apply, and why. Its sources come from the sdist that requirements/upstream.lock pins.
"""

from __future__ import annotations

from tests.upstream.periodic_tasks.running import run as run

SUITE = "periodic-tasks"
