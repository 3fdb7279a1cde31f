"""Runs: the pytest processes of the targets, two at a time, and their output one by one.

Two that share a server never run at once: some locks and some figures of a
server are common to all its databases. What a run prints goes to a file; the
terminal follows the file of the run that began first, then that of the next.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

from tools.checkout import ROOT, state_directory
from tools.children import environment
from tools.counts import Counts, read_counts
from tools.progress import say, sign
from tools.servers.ledger import Ledger, kill
from tools.targets import Target

LANES = 2
SECONDS = 1500
NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Ended:
    """How the run of a target ended."""

    target: Target
    counts: Counts
    seconds: float
    complaint: str = ""

    @property
    def is_good(self) -> bool:
        return not self.complaint and not self.counts.failed


class Run:
    """One pytest process and the file with its output."""

    def __init__(self, target: Target, variables: dict[str, str], arguments: Sequence[str]) -> None:
        self.target = target
        directory = state_directory() / "runs"
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / (target.slug + ".log")
        self.report = directory / (target.slug + ".xml")
        if self.report.exists():
            self.report.unlink()
        self.began = time.monotonic()
        self.is_late = False
        with open(str(self.log), "wb") as output:
            self.process = subprocess.Popen(
                command(target, self.report, arguments),
                cwd=str(ROOT),
                env=environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.page = Ledger(state_directory() / "ledger").record(self.process.pid, None)

    def has_ended(self) -> bool:
        if self.process.poll() is None and time.monotonic() - self.began > SECONDS:
            self.is_late = True
            self.end()
        return self.process.poll() is not None

    def end(self) -> None:
        """End the process and whatever it has started; the first signal lets it tidy up."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                kill(self.process.pid)
                self.process.wait()
            # What the tests had started, and pytest had no time to stop.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def result(self) -> Ended:
        """Return how it ended. A run that left no whole report is a failure of its own."""
        if self.page.exists():
            self.page.unlink()
        counts = read_counts(self.report)
        seconds = time.monotonic() - self.began
        code = self.process.returncode
        complaint = why_bad(code, counts, self.is_late)
        if counts is None or (complaint and not counts.failed):
            before = counts or Counts()
            counts = Counts(before.passed, before.failed + 1, before.skipped)
        return Ended(self.target, counts, seconds, complaint)


def why_bad(code: int, counts: Counts | None, is_late: bool = False) -> str:
    """Return what is wrong with a run apart from tests that failed, if anything."""
    if is_late:
        return "did not end within %d min" % (SECONDS // 60)
    if code == NOTHING_COLLECTED or (code == 0 and counts is not None and not counts.total):
        return "collected no test"
    if counts is None:
        return "it ended with %d and left no report" % code
    if code not in (0, 1) or (code == 1 and not counts.failed):
        return "it ended with %d" % code
    return ""


def command(target: Target, report: Path, arguments: Sequence[str]) -> list[str]:
    """Return how a target is run: by pytest, or by a program that writes the same report."""
    if target.program:
        return [target.environment.python, *target.program, "--junitxml=%s" % report]
    colour = "yes" if sys.stdout.isatty() else "no"
    argv = [target.environment.python, "-m", "pytest", "-p", "no:cacheprovider"]
    argv += ["-p", "tools.pytest_target", "--target", ",".join(target.kinds)]
    argv += ["--color=" + colour, "--junitxml=%s" % report, "-q"]
    return [*argv, *target.tests, *arguments]


def run_all(
    targets: Sequence[Target],
    variables: Callable[[Target], dict[str, str]],
    arguments: Sequence[str],
    afterwards: Callable[[Target], None],
) -> list[Ended]:
    """Run every target and return how each ended, in the order of the targets."""
    waiting = list(targets)
    running: list[Run] = []
    ended: dict[int, Ended] = {}
    shown: list[Run] = []
    screen = Screen(shown)
    try:
        while waiting or running:
            for target in startable(waiting, [run.target for run in running]):
                waiting.remove(target)
                run = Run(target, variables(target), arguments)
                running.append(run)
                shown.append(run)
            for run in [run for run in running if run.has_ended()]:
                running.remove(run)
                ended[id(run.target)] = run.result()
                afterwards(run.target)
            screen.follow()
            time.sleep(0.05)
        screen.follow()
    finally:
        for run in running:
            run.end()
            run.result()
            afterwards(run.target)
    return [ended[id(target)] for target in targets]


def startable(waiting: Sequence[Target], running: Sequence[Target]) -> list[Target]:
    """Return which of the waiting targets may start now beside those that run."""
    taken = {target.name for target in running if target.server}
    chosen: list[Target] = []
    for target in waiting:
        if len(running) + len(chosen) >= LANES:
            break
        if target.name not in taken:
            taken |= {target.name} if target.server else set()
            chosen.append(target)
    return chosen


class Screen:
    """What the terminal shows: the output of the runs, whole, one after the other."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.current = 0
        self.read = 0
        self.has_heading = False

    def follow(self) -> None:
        """Print what is new since the last time."""
        while self.current < len(self.runs):
            run = self.runs[self.current]
            is_over = run.process.poll() is not None
            if not self.has_heading:
                self.has_heading = True
                say(heading(run.target))
            with open(str(run.log), "rb") as file:
                file.seek(self.read)
                printed = file.read()
            self.read += len(printed)
            show(printed)
            if not is_over:
                return
            self.current, self.read, self.has_heading = self.current + 1, 0, False


def heading(target: Target) -> str:
    server = " " + target.server.version if target.server else ""
    line = sign("──", "--")
    return "\n%s %s%s %s Python %s" % (line, target.title, server, line, target.python_and_django)


def show(printed: bytes) -> None:
    if printed:
        encoding = sys.stdout.encoding or "ascii"
        text = printed.decode("utf-8", "replace").encode(encoding, "replace").decode(encoding)
        sys.stdout.write(text)
        sys.stdout.flush()
