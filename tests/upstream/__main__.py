"""Runs one suite with this Python, on the database that ONCE_TEST_DATABASE_URL names."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import django
import pytest

from tests.upstream import periodic_tasks as periodic
from tests.upstream import pgpubsub
from tests.upstream.building import built, pytest_arguments
from tests.upstream.suites import SUITES
from tools.counts import Counts, read_counts
from tools.errors import Refusal


def main(arguments: list[str]) -> int:
    """Run a suite, print its counts as the last line, and return pytest's exit code."""
    options, for_pytest = read_arguments(arguments)
    if options.suite == periodic.SUITE:
        return periodic.run(options.junitxml, for_pytest)
    if options.suite == pgpubsub.SUITE:
        return pgpubsub.run(options.junitxml, for_pytest)
    suite = SUITES[options.suite]
    if not django.__version__.startswith(f"{suite.django}."):
        print(f"{suite.name} runs on Django {suite.django}, and this is {django.__version__}.")
        return 2
    try:
        folder = built(suite)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        report = (options.junitxml or Path(place) / "report.xml").absolute()
        told = [f"--junitxml={report}", *pytest_arguments(suite, folder), *for_pytest]
        code = int(pytest.main(["-q", *told]))
        counts = read_counts(report) or Counts(failed=1)
    print(counts.line)
    return code


def read_arguments(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and what comes after -- for pytest."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m tests.upstream",
        description=__doc__,
        epilog="What follows -- goes to pytest.",
    )
    parser.add_argument("--suite", required=True, choices=[*SUITES, periodic.SUITE, pgpubsub.SUITE])
    parser.add_argument("--junitxml", type=Path, help="where the report for machines goes")
    return parser.parse_args(arguments[:cut]), arguments[cut + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
