"""The page of locks: who holds what until when, and who held it before."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import F

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import Lock
from django_once.models.lock import NOW, holders_of, state_of

MOST: Final = 100
MOST_HOLDERS: Final = 10


def show(visit: Visit) -> Shown:
    """Show the locks, those taken last first; a text narrows them by name."""
    text = visit.said("q")
    locks = Lock.objects.using(visit.database).annotate(now=NOW)
    if text:
        locks = locks.filter(name__icontains=text)
    only_held = not visit.said("all") and not text
    if only_held:
        locks = locks.filter(released_at=None, nonce__isnull=False)
    found = list(locks.order_by(F("acquired_at").desc(nulls_last=True), "name")[: MOST + 1])
    context = {"locks": [_told(lock) for lock in found[:MOST]], "text": text,
               "only_held": only_held, "is_more": len(found) > MOST, "most": MOST}  # fmt: skip
    return Shown("locks", "Locks", "once/locks.html", context, head="once/locks_head.html")


def _told(lock: Any) -> dict[str, Any]:
    left = None if lock.expires_at is None else (lock.expires_at - lock.now).total_seconds()
    return {"lock": lock, "state": state_of(lock, lock.now), "left": left,
            "holders": holders_of(lock)[:MOST_HOLDERS]}  # fmt: skip
