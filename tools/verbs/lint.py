"""`dev.py lint`: style, types, layers, architecture and locks, each with a line of its own."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Callable

from tools.checkout import ROOT, state_directory
from tools.children import ask
from tools.environments import Environment, ready_environment
from tools.interpreters import discover
from tools.locks import complaints
from tools.progress import Step, say

ARCHITECTURE = "tests/test_architecture.py"
PLACES = ("src", "tests", "tools", "dev.py")
LOOK = ("--quiet", "--output-format", "concise", *PLACES)
SECONDS = 600


@dataclass(frozen=True)
class Verdict:
    """What a check found; nothing said means that all is well."""

    is_good: bool
    said: str = ""


class Spoiled(Exception):
    """A check that was not passed. It only marks the line of its step."""


def run(name: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py lint", description=__doc__)
    parser.add_argument("--python", default="", metavar="P", help="this Python and no other")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument("--fix", action="store_true", help="let ruff repair what it can, first")
    options = parser.parse_args(arguments)
    newest = discover(options.python or None).newest()
    lint = ready_environment("lint", newest, options.offline)
    test = ready_environment("test", newest, options.offline)
    if options.fix:
        repair(lint)
    results = [checked(title, check) for title, check in checks(lint, test)]
    return 0 if all(results) else 1


def repair(lint: Environment) -> None:
    ask([*ruff(lint), "check", "--fix", "--quiet", *PLACES])
    ask([*ruff(lint), "format", "--quiet", *PLACES])


def checks(lint: Environment, test: Environment) -> list[tuple[str, Callable[[], Verdict]]]:
    """Return every check with its title, the quick ones first."""
    return [
        ("locks", locks),
        ("ruff check", lambda: verdict(lint, [*ruff(lint), "check", *LOOK])),
        ("ruff format", lambda: verdict(lint, [*ruff(lint), "format", "--check", *LOOK])),
        ("import-linter", lambda: layers(lint)),
        ("architecture", lambda: architecture(test)),
        ("mypy --strict", lambda: mypy(lint)),
    ]


def checked(title: str, check: Callable[[], Verdict]) -> bool:
    """Make one check, print its line and what it found, and say whether all is well."""
    found = Verdict(False)
    try:
        with Step(title):
            found = check()
            if not found.is_good:
                raise Spoiled
    except Spoiled:
        say("\n".join("      " + line for line in found.said.rstrip().splitlines()))
    return found.is_good


def locks() -> Verdict:
    found = complaints()
    return Verdict(not found, "\n".join(found))


def layers(lint: Environment) -> Verdict:
    if "[tool.importlinter]" not in (ROOT / "pyproject.toml").read_text():
        return Verdict(False, "pyproject.toml has no [tool.importlinter]: no layer was checked.")
    call = "from importlinter.cli import lint_imports_command as command; command()"
    cache = str(state_directory() / "cache" / "imports")
    return verdict(lint, [lint.python, "-c", call, "--cache-dir", cache])


def architecture(test: Environment) -> Verdict:
    if not (ROOT / ARCHITECTURE).exists():
        return Verdict(False, "%s does not exist: no rule was checked." % ARCHITECTURE)
    options = ["-p", "no:cacheprovider", "-q", "--no-header"]
    return verdict(test, [test.python, "-m", "pytest", *options, ARCHITECTURE])


def mypy(lint: Environment) -> Verdict:
    cache = str(state_directory() / "cache" / "mypy")
    packages = ["-p", "django_once", "-p", "tools"]
    return verdict(lint, [lint.python, "-m", "mypy", "--strict", *packages, "--cache-dir", cache])


def ruff(lint: Environment) -> list[str]:
    return [lint.python, "-m", "ruff"]


def verdict(environment: Environment, argv: list[str]) -> Verdict:
    cache = state_directory() / "cache"
    more = {
        "NO_COLOR": "1",
        "RUFF_CACHE_DIR": str(cache / "ruff"),
        # The types of models are read from Django's settings, which are those of the tests.
        "ONCE_TEST_DATABASE_URL": "sqlite://%s" % (cache / "types.sqlite3"),
    }
    answer = ask(argv, seconds=SECONDS, more=more)
    return Verdict(answer.is_good, answer.output)
