"""`dev.py clean`: what dev.py has made is removed, and nothing else."""

from __future__ import annotations

import argparse
import shutil

from tools.checkout import short_path, state_directory
from tools.progress import Step, say
from tools.servers.ledger import Ledger

MADE_HERE = (
    "cache",
    "docs",
    "environments",
    "hypothesis",
    "ledger",
    "packages",
    "reports",
    "runs",
    "shell",
)


def run(name: str, arguments: list[str]) -> int:
    argparse.ArgumentParser(prog="dev.py clean", description=__doc__).parse_args(arguments)
    state = state_directory()
    ended = Ledger(state / "ledger").reap()
    if ended:
        say("Processes that a crashed run had left over, now ended: %d." % ended)
    with Step("removing what is in %s" % short_path(state)):
        for directory in MADE_HERE:
            if (state / directory).exists():
                shutil.rmtree(str(state / directory))
    return 0
