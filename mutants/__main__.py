"""`python -m mutants`: takes one guard after the other away, and shows which test notices.

    python3 dev.py mutants                 all of them
    python3 dev.py mutants nonce clock     those whose names hold one of these words

It works on a copy of the checkout, with a PostgreSQL of its own. The tests must pass before and
fail with the mutation; one that survives, or no longer applies, makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.catalogue import MUTATIONS, Mutation
from mutants.tree import Tree
from tools.errors import Refusal
from tools.servers.harness import Harness
from tools.servers.kinds import KINDS

PATIENCE = 300
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*)?(?: - .*)?$", re.M)


def main() -> int:
    """Plant what was asked for and return 1 when one survives."""
    parser = argparse.ArgumentParser(prog="dev.py mutants", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="plant only those whose names hold one of these")
    words = parser.parse_args().words
    wanted = [one for one in MUTATIONS if not words or any(word in one.name for word in words)]
    if not wanted:
        parser.error(f"No mutation has one of these words in its name: {', '.join(words)}.")
    try:
        with a_server() as url, tempfile.TemporaryDirectory(prefix="once-mutants-") as place:
            return verdict(Laboratory(Tree(Path(place)), url), wanted)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2


class Laboratory:
    """The copy, and the tests that are run in it."""

    def __init__(self, tree: Tree, url: str) -> None:
        self.tree = tree
        self.surroundings = {
            **os.environ,
            "ONCE_TEST_DATABASE_URL": url,
            "PYTHONPATH": f"{tree.place / 'src'}{os.pathsep}{tree.place}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def failures(self, tests: tuple[str, ...], *, stop: bool) -> list[str]:
        """Run these tests and return the names of those that failed."""
        missing = [test for test in tests if not (self.tree.place / test).exists()]
        if missing:
            return [f"(there is no {', '.join(missing)})"]
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "-rfE",
        ]
        try:
            done = subprocess.run(
                [*argv, *(["-x"] if stop else []), *tests],
                cwd=self.tree.place, env=self.surroundings, capture_output=True, text=True,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ["(did not end)"]
        found = FAILURE.findall(done.stdout)
        if done.returncode and not found:
            last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            return [f"(pytest ended with {done.returncode}: {last})"]
        return found

    def noticed_by(self, mutation: Mutation) -> list[str]:
        """Return the first test that fails with this mutation; none when it survives."""
        before = self.tree.plant(mutation)
        try:
            for test in mutation.tests:
                found = self.failures((test,), stop=True)
                if found:
                    return found
        finally:
            self.tree.heal(before)
        return []


def verdict(laboratory: Laboratory, wanted: list[Mutation]) -> int:
    """Print a line for each mutation, and return the exit code."""
    tests = tuple(sorted({test for mutation in wanted for test in mutation.tests}))
    red = laboratory.failures(tests, stop=False)
    if red:
        print(f"These fail without any mutation, so they prove nothing: {', '.join(red)}")
        return 1
    failed = 0
    for mutation in wanted:
        began = time.monotonic()
        try:
            found = laboratory.noticed_by(mutation)
        except LookupError as error:
            found, said = [], f"no longer applies: {error}"
        else:
            said = f"noticed by {short(found[0])}" if found else "SURVIVES"
        failed += not found
        sign = "✓" if found else "✗"
        print(f"  {sign} {mutation.name:<56} {time.monotonic() - began:5.1f} s  {said}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} mutations are noticed.")
    return 1 if failed else 0


def short(test: str) -> str:
    """Return the name of a test without its folders."""
    return test.rpartition("/")[2]


@contextmanager
def a_server() -> Iterator[str]:
    """Give the address of a PostgreSQL of our own."""
    kind = KINDS["postgresql"]
    binaries = kind.installed()
    if not binaries:
        raise Refusal(f"No PostgreSQL is installed that could be started here: {kind.remedy}.")
    with Harness() as harness:
        yield kind.start(binaries[0], harness).url


if __name__ == "__main__":
    sys.exit(main())
