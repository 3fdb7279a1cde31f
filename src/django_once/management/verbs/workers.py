"""`once workers`: who works, since when, and until when it is trusted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.core.management.base import CommandParser

from django_once.management import rows
from django_once.management.places import OK, add_backend, places
from django_once.management.screen import Cell, Column, Screen, add_json, ago, length
from django_once.management.selection import span
from django_once.models.job import look
from django_once.models.worker import seen

WATCHES: Final = True
LATELY: Final = timedelta(hours=1)
ROLES: Final = {"alive": "SUCCESS", "lost": "ERROR", "lapsed": "ERROR"}
COLUMNS: Final = (
    Column("NAME", is_cut=True), Column("STATE"), Column("HOST", is_cut=True, spare=1),
    Column("PID", is_number=True, spare=2), Column("QUEUES", is_cut=True),
    Column("JOBS", is_number=True), Column("STARTED", is_number=True),
    Column("LEASE", is_number=True), Column("ENDED", is_number=True, spare=3),
    Column("ID", spare=4),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare how far to look back."""
    parser.add_argument(
        "--since", metavar="1h", help="show those too that ended within this time (default: 1h)"
    )
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Show the workers."""
    within = span(options["since"], "--since")
    backends = [options["backend"]] if options["backend"] else None
    found: list[tuple[dict[str, Any], datetime]] = []
    for place in places(options["backend"]):
        now = look.now(place.database)
        held = look.running_by_worker(place.database)
        for worker in seen(place.database, backends, LATELY if within is None else within):
            found.append((rows.of_worker(worker, now, held.get(worker.pk, 0)), now))
    if screen.is_json:
        screen.json({"workers": [worker for worker, _ in found]})
    elif found:
        screen.table(COLUMNS, [_row(worker, now) for worker, now in found])
    else:
        screen.say("No worker is running. Start one: python manage.py once worker")
    return OK


def _row(worker: dict[str, Any], now: datetime) -> list[Cell | str]:
    ended = worker["stopped_at"] or worker["lost_at"]
    left = (worker["leased_until"] - now).total_seconds()
    lease = "–" if ended else length(left) if left > 0 else f"over for {length(-left)}"
    return [
        worker["name"],
        Cell(worker["state"], ROLES.get(worker["state"], "")),
        worker["host"],
        str(worker["pid"]),
        ", ".join(worker["queues"]),
        f"{worker['running']}/{worker['concurrency']}",
        ago(worker["started_at"], now),
        lease,
        ago(ended, now),
        str(worker["id"]),
    ]
