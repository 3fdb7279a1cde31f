"""The overview: what waits, what runs, how fast, and what needs somebody's attention."""

from __future__ import annotations

from django_once.dashboard import charts, figures
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import Visit

MOST_QUEUES = 8
MOST_OLDEST = 5


def show(visit: Visit) -> Shown:
    """Show a place at a glance."""
    asked = visit.said("range")
    chosen = asked if asked in charts.RANGES else "1h"
    found = figures.figures(visit)
    ended, length = charts.stretches(visit.database, visit.now, chosen)
    drawn = [charts.throughput(ended, length), charts.waiting(ended, length),
             charts.running(ended, length)]  # fmt: skip
    busiest = sorted(
        found.queues, key=lambda one: (-one.ready, -one.running, -one.rate, one.backend, one.name)
    )
    context = {
        "figures": found, "alarms": figures.alarms(visit, found), "charts": drawn,
        "chosen": chosen, "ranges": list(charts.RANGES),
        "queues": busiest[:MOST_QUEUES], "left_out": max(0, len(busiest) - MOST_QUEUES),
        "oldest": figures.oldest(found, MOST_OLDEST),
        "concurrency": sum(worker.concurrency for worker in found.workers),
    }  # fmt: skip
    return Shown("changelist", "Background work", "once/overview.html", context)
