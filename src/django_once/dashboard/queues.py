"""The page of queues: how deep, how old, how fast, who takes from them, and what is stopped."""

from __future__ import annotations

from typing import Any

from django_once import payload
from django_once.dashboard import figures
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit
from django_once.models import Pause
from django_once.models.strike.stop import strikes
from django_once.models.tally.breaker import open_breakers
from django_once.redaction import rules_of, without


def show(visit: Visit) -> Shown:
    """Show the queues of a place, and the tasks and keys that are paused, rest or are struck."""
    found = figures.figures(visit)
    struck = strikes(visit.database, visit.aliases)
    context = {
        "figures": found, "several": len(visit.backends) > 1,
        "pauses": [one for one in found.pauses if one.kind != Pause.QUEUE],
        "breakers": open_breakers(visit.database, visit.aliases),
        "strikes": [(one, _arguments(one)) for one in struck],
        "kinds": (Pause.TASK, Pause.KEY, Pause.QUEUE),
    }  # fmt: skip
    return Shown("queues", "Queues", "once/queues.html", context, head="once/queues_head.html")


def _arguments(struck: Any) -> Any:
    """Return what was struck, without what the task hides."""
    named = payload.decode(struck.arguments)
    return without(struck.task, [], named, rules_of(struck.task, struck.backend)).kwargs
