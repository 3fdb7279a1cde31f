"""`python -m demo`: plays the shop, kills what can be killed, audits the books, says so."""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from demo import stage
from demo.ledger import audited
from demo.play import Play, Wish
from demo.screen import Screen

PASSED, FAILED, MISUNDERSTOOD, INTERRUPTED = 0, 1, 2, 130


def main() -> int:
    wish = read_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return play(wish)
    except stage.Refusal as refusal:
        print(refusal, file=sys.stderr)
        return MISUNDERSTOOD
    except KeyboardInterrupt:
        print("Interrupted: every process of the demo was stopped.", file=sys.stderr)
        return INTERRUPTED


def play(wish: Wish) -> int:
    """Play it once and return the exit code, which is that of the books."""
    screen = Screen(sys.stderr if wish.json else sys.stdout)
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="once-demo-"))
        if not wish.keep:
            stack.callback(stage.remove, directory)
        database = stack.enter_context(stage.database(wish.db, directory, keep=wish.keep))
        screen.headline(database.title)
        played = stack.enter_context(Play(wish, database, directory, screen))
        with screen.step("tables of the shop and of its jobs"):
            played.migrate()
        story = played.run()
        verdict = audited(database, directory, wish.orders, story)
    screen.verdict(verdict)
    if wish.keep:
        screen.say(f"\n  kept: {directory}, {database.url_shown}")
    if wish.json:
        print(json.dumps(verdict.as_json(), indent=2))
    return PASSED if verdict.is_good else FAILED


def read_arguments() -> Wish:
    """Return what was asked for; refuse what cannot be meant."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    add = parser.add_argument
    add("--db", choices=("sqlite", "postgres"), default="sqlite", help="where the shop's rows live")
    add("--orders", type=int, default=1000, metavar="N", help="how many are placed (1000)")
    add("--seconds", type=float, default=18, metavar="S", help="how long they keep coming (18)")
    add("--keep", action="store_true", help="leave the database and the logs for a look")
    add("--json", action="store_true", help="print the verdict as JSON; the rest goes to stderr")
    options = parser.parse_args()
    if not 1 <= options.orders <= 100_000:
        parser.error(f"--orders must be from 1 to 100,000, got {options.orders}.")
    if not 3 <= options.seconds <= 3600:
        parser.error(f"--seconds must be from 3 to 3600, got {options.seconds:g}.")
    if importlib.util.find_spec("django") is None:
        parser.error("Django is not installed here. Run: python3 dev.py demo")
    return Wish(**vars(options))


if __name__ == "__main__":
    sys.exit(main())
