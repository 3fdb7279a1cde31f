"""`dev.py test`: every test, on every database and Django that can be had on this machine."""

from __future__ import annotations

import argparse
from typing import Sequence

from tools.checkout import short_path, state_directory
from tools.children import ask
from tools.closing import summary, table, write_json
from tools.commands import INTERRUPTED, complain, did_you_mean
from tools.counts import total
from tools.errors import Refusal
from tools.progress import say
from tools.rounds import Round, Wish, prepared
from tools.runs import Ended
from tools.servers.harness import Harness
from tools.targets import NAMES, NotTested


def run(name: str, arguments: list[str]) -> int:
    wish, pytest_arguments = read_arguments(arguments)
    with Harness() as harness:
        try:
            one = prepared(wish, harness)
            ended = one.run(pytest_arguments)
        except KeyboardInterrupt:
            stopped = harness.stop_all()
            complain("\nInterrupted: the tests did not finish. Servers stopped: %d." % stopped)
            return INTERRUPTED
    return close(one, ended, wish)


def read_arguments(arguments: list[str]) -> tuple[Wish, list[str]]:
    """Return what was asked for, and what comes after -- for pytest."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    arguments, pytest_arguments = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(
        prog="dev.py test", description=__doc__, epilog="What follows -- goes to pytest."
    )
    parser.add_argument("--quick", action="store_true", help="one combination, on SQLite")
    parser.add_argument("--python", default="", metavar="P", help="this Python and no other")
    parser.add_argument(
        "--only", type=names, default=(), metavar="LIST", help="of " + ", ".join(NAMES)
    )
    parser.add_argument(
        "--require", type=names, default=(), metavar="LIST", help="must be tested; 'all' for all"
    )
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument(
        "--allow-remote", action="store_true", help="use servers on other machines, if named"
    )
    options = parser.parse_args(arguments)
    left_out = [one for one in options.require if options.only and one not in options.only]
    if left_out and options.require != NAMES:
        raise Refusal("--require names %s, which --only leaves out." % ", ".join(left_out))
    wish = Wish(
        options.only,
        options.require,
        options.python,
        options.quick,
        options.offline,
        options.allow_remote,
    )
    return wish, pytest_arguments


def names(text: str) -> tuple[str, ...]:
    """Return the targets of a comma-separated list."""
    listed = tuple(part.strip() for part in text.split(",") if part.strip())
    for one in listed:
        if one not in (*NAMES, "all"):
            raise argparse.ArgumentTypeError("no target %r.%s" % (one, did_you_mean(one, NAMES)))
    return NAMES if "all" in listed else listed


def close(one: Round, ended: Sequence[Ended], wish: Wish) -> int:
    """Print the closing table and the counts, and return the exit code."""
    version = sqlite_version(one)
    counts = total(each.counts for each in ended)
    say()
    for line in table(ended, one.not_tested, version):
        say(line)
    say()
    report = state_directory() / "reports" / "test.json"
    write_json(report, ended, one.not_tested, version)
    say("%s (also in %s)" % (summary(counts, one.not_tested), short_path(report)))
    lacking = required_but_missing(ended, one.not_tested, wish.require)
    if lacking:
        say("Required, and NOT TESTED: %s." % ", ".join(lacking))
    say(counts.line)
    return 0 if ended and all(each.is_good for each in ended) and not lacking else 1


def required_but_missing(
    ended: Sequence[Ended], not_tested: Sequence[NotTested], required: Sequence[str]
) -> list[str]:
    """Return what was required and has no test to its name."""
    tested = {name for one in ended for name in (one.target.name, one.target.group)}
    missing = {one.name for one in not_tested}
    return [name for name in required if name in missing or name not in tested]


def sqlite_version(one: Round) -> str:
    code = "import sqlite3; print(sqlite3.sqlite_version)"
    return "SQLite " + ask([one.search.python, "-c", code], seconds=20).output.strip()
