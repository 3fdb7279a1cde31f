"""Looking again and again: `--watch` of every verb that looks, until somebody has seen enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once.management.places import OK, USAGE
from django_once.management.screen import Screen

EVERY: Final = 2.0
SHORTEST: Final = 0.1
LONGEST: Final = 3600.0
CLEAR: Final = "\x1b[H\x1b[2J"


def add_watch(parser: CommandParser) -> None:
    """Declare how often to look."""
    parser.add_argument(
        "--watch", nargs="?", type=float, const=EVERY, metavar="S",
        help=f"show it again every so many seconds (default: {EVERY:g}), until Ctrl-C",
    )  # fmt: skip


def repeatedly(
    run: Callable[[Screen, dict[str, Any]], int], screen: Screen, options: dict[str, Any]
) -> int:
    """Run a verb once, or as often as it is watched; return the exit status.

    What is watched as JSON is one document in each line.
    """
    pause = options.get("watch")
    if pause is None:
        return run(screen, options)
    if not SHORTEST <= pause <= LONGEST:
        raise CommandError(
            f"--watch takes {SHORTEST:g} to {LONGEST:g} seconds, got {pause:g}.", returncode=USAGE
        )
    if options.get("action") not in (None, "list") or options.get("kind"):
        raise CommandError(
            "--watch shows again and again; what changes something is done once: leave it out.",
            returncode=USAGE,
        )
    try:
        while True:
            if screen.out.isatty() and not screen.is_json:
                screen.out.write(CLEAR, ending="")
            run(screen, options)
            screen.out.flush()
            time.sleep(pause)
    except KeyboardInterrupt:
        return OK
