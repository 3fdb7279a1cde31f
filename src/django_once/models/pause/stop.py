"""Pausing and resuming: what is paused is not started, and runs in its order when that is over.

A paused queue is left out by the claim. A job of a paused task or key is met by a claim, which
says so of the row; it goes back unstarted and uncharged, blocked by the pause, and leaves the ready
index until it is let go.

Race: a worker that met a job while its task was paused gives it back when the pause is over. So
whatever is blocked and no pause covers is let go, again and again, not only at the resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from django_once import sql
from django_once.clock import Now
from django_once.models.job.ready import let_go
from django_once.models.pause.row import Pause
from django_once.sql.values import PAUSED

KINDS: Final = (Pause.QUEUE, Pause.TASK, Pause.KEY)


def pause(
    database: str, backend: str, kind: str, name: str,
    *, reason: str = "", until: timedelta | datetime | None = None, by: str = "",
) -> None:  # fmt: skip
    """Let nothing of this queue, task or key start; said again, it says the new reason and end."""
    moment: Any = Now() + until if isinstance(until, timedelta) else until
    said = {"reason": reason, "until": moment, "paused_by": by, "paused_at": Now()}
    Pause.objects.using(database).update_or_create(
        backend=backend, kind=kind, name=name, defaults=said
    )


def resume(database: str, backend: str, kind: str, name: str) -> bool:
    """Let this queue, task or key go on; False when it was not paused."""
    ended, _ = Pause.objects.using(database).filter(backend=backend, kind=kind, name=name).delete()
    if ended:
        let_go_unpaused(database)
    return bool(ended)


def end_lapsed(database: str) -> int:
    """End the pauses whose time is over; count them."""
    lapsed = Pause.objects.using(database).filter(until__lte=Now())
    return lapsed.delete()[0]


def let_go_unpaused(database: str) -> int:
    """Give a place to every job that a pause has blocked and none covers now; count them."""
    statements = sql.on(database)
    return let_go(database, PAUSED, statements.is_unpaused())


def pauses(database: str, backends: Sequence[str]) -> list[Pause]:
    """Return what is paused at these backends, the last first."""
    living = Q(until=None) | Q(until__gt=Now())
    found = Pause.objects.using(database).filter(living, backend__in=backends)
    return list(found.order_by("-paused_at", "kind", "name"))
