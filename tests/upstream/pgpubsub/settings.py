"""The settings of the tests, with what that suite expects to be there."""

from __future__ import annotations

from tests import settings as ours
from tests.settings import *  # noqa: F403

DATABASES = {"default": ours.DATABASES["default"]}
INSTALLED_APPS = [
    *[name for name in ours.INSTALLED_APPS if not name.startswith("tests.")],
    "pgpubsub_suite.apps.TestsConfig",
]
TASKS = {"default": {"BACKEND": "django_once.backend.DatabaseBackend"}}
USE_TZ = False
# As in theirs: a context of one test would be heard in the next.
PGPUBSUB_TX_BOUND_NOTIFICATION_CONTEXT = True
