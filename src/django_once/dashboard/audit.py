"""The page of the audit log: who did what, when, by which door, and what came of it."""

from __future__ import annotations

from typing import Any, Final

from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import audit

MOST: Final = 50


def show(visit: Visit) -> Shown:
    """Show people's acts, the last first; an actor or an act leads to the others like it."""
    like: dict[str, Any] = {
        name: visit.said(name) for name in ("actor", "act", "kind") if visit.said(name)
    }
    asked = visit.said("before")
    before = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else None
    found = audit.entries(visit.database, MOST + 1, before=before, **like)
    context = {
        "entries": found[:MOST], "like": like, "before": before,
        "further": found[MOST - 1].pk if len(found) > MOST else None,
    }  # fmt: skip
    return Shown("audit", "Audit log", "once/audit.html", context, is_live=before is None)
