"""`once listen`: workers for the notifications of channels, and for nothing else.

A worker that takes all queues handles them too. This is for those who want processes of their own.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_once.channels.broadcasting import unheard
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
        default=4,
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
        process_stored_notifications(one for one in meant if one.lock_notifications)
    for channel in meant:
        screen.tell(f"Listening to {words_of(channel).name}.")
    status = Supervisor(plan, backend_named(plan.backend)).run()
    # The keeper has said what is missing.
    return USAGE if status == EX_CONFIG else status


def _meant(names: list[str] | None) -> list[type[BaseChannel]]:
    """Return the channels that are meant; refuse names that nobody declared."""
    chosen = channels() if not names else [one for name in names for one in family(located(name))]
    found = list(dict.fromkeys(chosen))
    if not names:
        # Those that nobody would hear are findings of `check`, and no reason to hear none.
        found = [one for one in found if listeners_of(one) and not _refusal(one)]
    for one in found:
        if refusal := _refusal(one):
            raise CommandError(refusal, returncode=USAGE)
    if not found:
        said = "No channel is declared with listeners" if not names else "Of these none is declared"
        raise CommandError(
            f"{said}: there is nothing to listen to. Import the module with the listeners when "
            "apps load, as 'listeners' is.",
            returncode=USAGE,
        )
    return found


def _refusal(channel: type[BaseChannel]) -> str:
    return "" if channel.lock_notifications else unheard(words_of(channel))


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
            f"These channels are of several backends: {', '.join(backends)}. Name channels "
            "of one of them, by --channels.",
            returncode=USAGE,
        )
    return Plan(
        backend=backends[0],
        queues=tuple(dict.fromkeys(one.queue for one in words if one.is_stored)),
        hears=tuple(one.name for one in words if not one.is_stored),
        scheduler=False,
        **{name: options[name] for name in (
            "processes", "concurrency", "batch", "drain_timeout", "worker_id",
        )},
    )  # fmt: skip
