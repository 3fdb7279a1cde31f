"""`dev.py demo`, `bench`, `chaos`, `mutants`: an environment, and a program run in it."""

from __future__ import annotations

from tools.checkout import ROOT
from tools.children import watch
from tools.environments import ready_environment
from tools.errors import Refusal
from tools.interpreters import discover

# What each needs installed. The demo gets what a user of the package gets.
LOCKS = {"demo": "demo", "bench": "test", "chaos": "test", "mutants": "test"}


def run(name: str, arguments: list[str]) -> int:
    if not exists(name):
        raise Refusal("The program %r is not in this checkout yet." % name)
    python, offline, arguments = own_options(arguments)
    environment = ready_environment(LOCKS[name], discover(python or None).newest(), offline)
    return watch([environment.python, "-m", name, *arguments])


def exists(name: str) -> bool:
    return (ROOT / (name + ".py")).exists() or (ROOT / name / "__main__.py").exists()


def own_options(arguments: list[str]) -> tuple[str, bool, list[str]]:
    """Return --python and --offline, which are for dev.py, and the rest, for the program."""
    python, offline, rest = "", False, []
    waiting = iter(arguments)
    for one in waiting:
        if one == "--offline":
            offline = True
        elif one == "--python":
            python = next(waiting, "")
        elif one.startswith("--python="):
            python = one.partition("=")[2]
        else:
            rest.append(one)
    return python, offline, rest
