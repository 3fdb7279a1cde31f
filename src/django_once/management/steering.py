"""What the shell and the admin do alike: retry, wake whoever may run it, and say who did it."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from django_once.backend import DatabaseBackend
from django_once.models import audit
from django_once.models.audit import AuditEntry, Telling
from django_once.models.job.again import retry
from django_once.wakeups.listen import announce


def logged_in_shell(
    database: str, act: str, kind: str, about: str, **said: Any
) -> AbstractContextManager[Telling]:
    """Keep what somebody does in a shell in the audit log, with what it tells."""
    return audit.acted(
        database, actor=shell_user(), door=AuditEntry.SHELL, act=act, kind=kind, about=about, **said
    )


def logged_in_admin(
    database: str, user: Any, act: str, kind: str, about: str, **said: Any
) -> AbstractContextManager[Telling]:
    """Keep what somebody does on a page of the admin in the audit log, with what it tells."""
    return audit.acted(
        database, actor=str(user.get_username()), door=AuditEntry.ADMIN, act=act, kind=kind,
        about=about, **said,
    )  # fmt: skip


def shell_user() -> str:
    """Return who sits at this shell, and where."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        name = "somebody"
    return f"{name}@{socket.gethostname()}"[: audit.LONGEST]


def in_words(options: Mapping[str, Any]) -> str:
    """Return which jobs a command means, as an entry says it: ids, or what they share."""
    if options["ids"]:
        return " ".join(options["ids"])
    said = {**options, "state": ",".join(options["state"] or ())}
    names = ("state", "task", "queue", "worker", "reason", "since")
    return " ".join(f"{name}:{said[name]}" for name in names if said[name])


def of_jobs(ids: Sequence[UUID]) -> dict[str, Any]:
    """Return what an entry says of these jobs."""
    if len(ids) == 1:
        return {"about": str(ids[0]), "job": ids[0]}
    return {"about": " ".join(map(str, ids))}


def retry_jobs(backends: Iterable[DatabaseBackend], database: str, ids: Sequence[UUID]) -> int:
    """Make these ended jobs ready and wake an idle worker; return how many had ended."""
    retried = retry(database, ids)
    for backend in backends:
        if retried and backend.settings.wakeup == "auto":
            announce(database, backend.alias, is_ready=True)
    return retried
