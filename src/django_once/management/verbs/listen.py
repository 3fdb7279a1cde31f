"""`once listen`: workers for the notifications of channels, and for nothing else.

A worker that takes all queues handles them too. This is for those who want processes of their own.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_once.channels.handling import declare_tasks
from django_once.channels.telling import process_stored_notifications
from django_once.definitions.channel import BaseChannel, channels, family, located, words_of
from django_once.definitions.listeners import listeners_of
from django_once.management.places import USAGE, backend_named
from django_once.management.screen import Screen
from django_once.processes.child import EX_CONFIG
from django_once.processes.plan import Plan
from django_once.processes.supervisor import Supervisor

MOST_PROCESSES = 256
MOST_AT_ONCE = 10_000


def add_arguments(parser: CommandParser) -> None:
    """Declare which channels, and by how many processes."""
    add = parser.add_argument
    add(
        "--channels",
        nargs="+",
        metavar="PATH",
        help="channels, or what they are made of (default: all that are heard)",
    )
    add("--processes", "-p", type=int, default=1, help="worker processes")
    add(
        "--concurrency",
        "-c",
        type=int,
        default=1,
        help="notifications at once in each process",
    )
    add(
        "--recover",
        action="store_true",
        help="taken for the scripts of others: what is stored is handled in any case",
    )
    add("--batch", action="store_true", help="handle what is stored, then exit")
    add(
        "--drain-timeout",
        type=float,
        default=25.0,
        metavar="S",
        help="seconds that running listeners have to end after the first signal",
    )
    add("--worker-id", default="", help="the name that results show")


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Run a supervisor for these channels until it is told to stop; return its exit status."""
    meant = _meant(options["channels"])
    declare_tasks()
    plan = _plan(options, meant)
    if options["recover"]:
        process_stored_notifications(meant)
    for channel in meant:
        screen.tell(f"Listening to {words_of(channel).name}.")
    status = Supervisor(plan, backend_named(plan.backend)).run()
    # The keeper has said what is missing.
    return USAGE if status == EX_CONFIG else status


def _meant(names: list[str] | None) -> list[type[BaseChannel]]:
    """Return the stored channels that are meant; refuse names that nobody declared."""
    chosen = channels() if not names else [one for name in names for one in family(located(name))]
    found = list(dict.fromkeys(chosen))
    stored = [one for one in found if one.lock_notifications]
    if not names:
        stored = [one for one in stored if listeners_of(one)]
    if not stored:
        said = (
            f"{', '.join(names)} are" if names else "No channel is declared with listeners that is"
        )
        raise CommandError(
            f"{said} stored: there is nothing to listen to. Say lock_notifications = True, and "
            "import the module with its listeners when apps load, as 'listeners' is.",
            returncode=USAGE,
        )
    return stored


def _plan(options: dict[str, Any], meant: list[type[BaseChannel]]) -> Plan:
    for name, most in (("processes", MOST_PROCESSES), ("concurrency", MOST_AT_ONCE)):
        if not 1 <= options[name] <= most:
            raise CommandError(
                f"--{name} must be from 1 to {most}, got {options[name]}.", returncode=USAGE
            )
    words = [words_of(channel) for channel in meant]
    backends = sorted({one.backend for one in words})
    if len(backends) > 1:
        raise CommandError(
            f"These channels are stored by several backends: {', '.join(backends)}. Name channels "
            "of one of them, by --channels.",
            returncode=USAGE,
        )
    return Plan(
        backend=backends[0],
        queues=tuple(dict.fromkeys(one.queue for one in words)),
        scheduler=False,
        **{name: options[name] for name in (
            "processes", "concurrency", "batch", "drain_timeout", "worker_id",
        )},
    )  # fmt: skip
