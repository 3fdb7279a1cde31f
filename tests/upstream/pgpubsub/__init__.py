"""The own tests of django-pgpubsub, run against our channels through a mapping of names.

    python -m tests.upstream --suite pgpubsub

On PostgreSQL, the only database they know. mapping.py says under which of our words each of its
names goes, exclusions.py which of its tests cannot apply, and why. Its sources come from the sdist
that requirements/upstream.lock pins.
"""

from __future__ import annotations

from tests.upstream.pgpubsub.running import run as run

SUITE = "pgpubsub"
