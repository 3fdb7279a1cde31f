"""`once bench`: what this server does with jobs, measured in a database that is made and dropped.

It is short and honest: each way to enqueue, one worker process, one idle worker. Beside each figure
stands what the same statements reach when nothing but them is sent, on the same server in the same
minute. Nothing of the project is run or changed; the server is kept busy meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from django_once import compat
from django_once.backend import DatabaseBackend
from django_once.declare import task
from django_once.management.bench import tasks
from django_once.management.bench.base import database_of_its_own
from django_once.management.bench.measures import Figure, Measures, Scale
from django_once.management.places import OK, PROBLEM, USAGE, backend_named
from django_once.management.screen import Cell, Column, Screen, add_json

ALIAS: Final = "once_bench"
FEWEST, MOST = 100, 1_000_000
COLUMNS: Final = (
    Column("Measure"), Column("Value", is_number=True), Column("Unit"),
    Column("Statements alone", is_number=True), Column("Share", is_number=True),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare where, and how much."""
    add = parser.add_argument
    add("--backend", default="default", metavar="ALIAS", help="an alias in TASKS: on its server")
    add("--jobs", type=int, default=10_000, metavar="N", help="of the drain (default: 10000)")
    add("--seconds", type=float, default=2.0, metavar="S", help="of each way to enqueue (2)")
    add("--samples", type=int, default=30, metavar="N", help="of the pickup (30)")
    add("--yes", "-y", action="store_true", help="do not ask")
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Measure, in a database of its own."""
    scale = _scale(options)
    backend = backend_named(options["backend"])
    database = backend.database
    question = f"Keep the server of database {database!r} busy for about half a minute?"
    if not options["yes"] and not screen.ask(question):
        return PROBLEM
    with database_of_its_own(database):
        measures = _measures(backend, scale)
        figures = list(measures.all())
        title = _title(connections[database])
    if options["json"]:
        screen.json(
            {"database": title, "jobs": scale.jobs, "figures": list(map(_as_json, figures))}
        )
        return OK
    screen.say(f"{title}, {scale.jobs:,} jobs, in a database of its own")
    screen.table(COLUMNS, map(_row, figures))
    return OK


def _scale(options: dict[str, Any]) -> Scale:
    for name, least, most in (
        ("jobs", FEWEST, MOST), ("seconds", 0.1, 60.0), ("samples", 5, 1_000),
    ):  # fmt: skip
        if not least <= options[name] <= most:
            raise CommandError(
                f"--{name} must be from {least:,} to {most:,}, got {options[name]}.",
                returncode=USAGE,
            )
    return Scale(options["seconds"], options["jobs"], options["samples"])


def _measures(like: DatabaseBackend, scale: Scale) -> Measures:
    """Return the measures of a backend like this one, whose jobs are nobody else's.

    Under an alias of its own: what the project declares begins by itself is not of this backend.
    """
    said: Any = settings.TASKS[like.alias]
    compat.task_backends.settings[ALIAS] = {**said, "QUEUES": []}
    backend = compat.task_backends[ALIAS]
    assert isinstance(backend, DatabaseBackend)
    nothing, tell = (task(backend=ALIAS)(function) for function in (tasks.nothing, tasks.tell))
    return Measures(backend, nothing, tell, scale)


def _title(connection: Any) -> str:
    is_mariadb = getattr(connection, "mysql_is_mariadb", False)
    name = "MariaDB" if is_mariadb else connection.display_name
    return f"{name} {'.'.join(map(str, connection.get_database_version()))}"


def _row(figure: Figure) -> list[Cell | str]:
    value = f"{figure.value:,.0f}" if figure.unit == "jobs/s" else f"{figure.value:.1f}"
    if not figure.alone:
        return [figure.name, value, figure.unit, "", ""]
    share = figure.value / figure.alone
    return [figure.name, value, figure.unit, f"{figure.alone:,.0f}", f"{share:.2f}"]


def _as_json(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name, "value": round(figure.value, 3), "unit": figure.unit,
        "statements_alone": figure.alone and round(figure.alone, 1),
    }  # fmt: skip
