"""The page of queues: how deep, how old, how fast, who takes from them, and what is paused."""

from __future__ import annotations

from django_once.dashboard import figures
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import Pause


def show(visit: Visit) -> Shown:
    """Show the queues of a place, and the tasks and keys that are paused."""
    found = figures.figures(visit)
    others = [one for one in found.pauses if one.kind != Pause.QUEUE]
    context = {"figures": found, "pauses": others, "several": len(visit.backends) > 1,
               "kinds": (Pause.TASK, Pause.KEY, Pause.QUEUE)}  # fmt: skip
    return Shown("queues", "Queues", "once/queues.html", context, head="once/queues_head.html")
