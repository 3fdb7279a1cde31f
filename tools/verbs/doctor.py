"""`dev.py doctor`: what was found on this machine and why; it makes nothing and changes nothing."""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from tools.checkout import REQUIREMENTS, short_path, state_candidates, state_directory
from tools.children import ask
from tools.environments import environment_for
from tools.errors import Refusal
from tools.installers import uv_for
from tools.interpreters import Discovery, Interpreter, discover
from tools.locks import complaints, read_pins
from tools.progress import say, sign
from tools.servers.harness import Harness
from tools.servers.kind import Kind
from tools.servers.kinds import KINDS
from tools.servers.search import Search
from tools.servers.server import Server

NEEDED_BYTES = 1_000_000_000


def run(name: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py doctor", description=__doc__)
    parser.add_argument("--offline", action="store_true", help="do not ask the package index")
    options = parser.parse_args(arguments)
    found = discover()
    problems = pythons(found)
    newest = found.usable[0] if found.usable else None
    problems += places()
    problems += environments(found)
    problems += servers(newest)
    problems += index(newest, options.offline)
    say()
    if not problems:
        say("Nothing stands in the way of 'python3 dev.py test'.")
        return 0
    say("What stands in the way:")
    for problem in problems:
        say("  - " + problem)
    return 1


def pythons(found: Discovery) -> list[str]:
    """Print every Python with the reason for or against it."""
    title("Pythons")
    usable = found.usable
    for one in sorted(found.interpreters, key=lambda one: one.version, reverse=True):
        if one.why_not:
            row(False, one.version_text, "%s: %s" % (short_path(one.path), one.why_not))
        else:
            role = " (the newest that works: used unless --python)" if one is usable[0] else ""
            row(True, one.version_text, short_path(one.path) + role)
    for path, reason in found.silent:
        row(False, "?", "%s: %s" % (short_path(path), reason))
    if usable:
        return []
    try:
        found.newest()
    except Refusal as refusal:
        return [str(refusal)]
    return []


def places() -> list[str]:
    """Print where dev.py writes, and how much room there is."""
    title("Places")
    problems = []
    state = state_directory()
    why = "" if state == state_candidates_first() else " (the checkout cannot be written)"
    for purpose, place in (("state", state), ("temporary", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(str(place)).free
        is_enough = free >= NEEDED_BYTES
        room = "%.1f GB free" % (free / 1e9)
        row(is_enough, purpose, "%s, %s%s" % (short_path(place), room, why))
        why = ""
        if not is_enough:
            problems.append("%s has %s; about 1 GB is needed." % (short_path(place), room))
    return problems


def state_candidates_first() -> Path:
    from tools.checkout import ROOT

    return state_candidates(ROOT)[0]


def environments(found: Discovery) -> list[str]:
    """Print the locks, and which environments are ready."""
    title("Environments")
    for lock in sorted(REQUIREMENTS.glob("*.lock")):
        ready = [
            one.version_text for one in found.usable if environment_for(lock.stem, one).is_ready
        ]
        state = "ready on Python " + ", ".join(ready) if ready else "made when it is needed"
        row(True, lock.stem, "%d packages pinned, %s" % (len(read_pins(lock)), state))
    problems = complaints()
    for problem in problems:
        row(False, "lock", problem)
    return problems


def servers(newest: Interpreter | None) -> list[str]:
    """Print what each database's tests would run on. Nothing is started."""
    title("Servers")
    row(True, "sqlite", "SQLite %s, of this Python" % sqlite3.sqlite_version)
    environment = environment_for("test", newest) if newest else None
    python = environment.python if environment and environment.is_ready else ""
    search = Search(python, newest, Harness()) if python and newest else None
    for name, kind in KINDS.items():
        good, text = server(kind, search)
        row(good, name, text)
    return []


def server(kind: Kind, search: Search | None) -> tuple[bool, str]:
    """Return whether there is something to test with, and what."""
    named = [name for name in (*kind.variables, *kind.hints) if os.environ.get(name)]
    looked: list[str] = []
    if search is not None:
        found = search.already_there(kind, looked)
        if isinstance(found, Server):
            where = found.address.shown
            return True, "%s, %s at %s" % (found.title, found.origin, where)
    else:
        looked.append("running servers are asked once the test environment is ready")
    if named:
        looked.append("named by " + ", ".join(named))
    binaries = kind.installed()
    if binaries:
        looked.append("%s would be started from %s" % (kind.name, short_path(binaries[0].program)))
        return True, "; ".join(looked)
    if kind.can_be_fetched:
        return True, "; ".join([*looked, "no binaries here; fetched when needed"])
    return False, "; ".join([*looked, "NOT TESTED. Remedy: " + kind.remedy])


def index(newest: Interpreter | None, is_offline: bool) -> list[str]:
    """Print who installs, and whether the package index answers."""
    title("Packages")
    if newest is None or is_offline:
        row(False, "index", "not asked")
        return []
    row(True, "installer", "uv" if uv_for(newest.path) else "pip")
    with tempfile.TemporaryDirectory() as scratch:
        argv = [newest.path, "-m", "pip", "download", "--no-deps", "-q", "--no-cache-dir"]
        answer = ask([*argv, "-d", scratch, "sqlparse"], seconds=60)
    row(answer.is_good, "index", "answers pip" if answer.is_good else "gives pip no answer")
    if answer.is_good:
        return []
    return ["The package index gave pip no answer: what is not ready yet cannot be made."]


def title(text: str) -> None:
    say("\n" + text)


def row(is_good: bool, name: str, text: str) -> None:
    say("  %s %-14s %s" % (sign("✓", "+") if is_good else sign("–", "-"), name, text))
