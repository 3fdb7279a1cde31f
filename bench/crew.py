"""Workers under measurement: the command a user types, and what /proc says of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from bench.errors import Refusal

MANAGE: Final = Path(__file__).parent / "project" / "manage.py"
READY: Final = "django-once "
SECONDS_TO_START: Final = 30.0
SECONDS_TO_STOP: Final = 15.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Crew:
    """One `manage.py once worker` and its children."""

    def __init__(self, process: subprocess.Popen[str], said: IO[str]) -> None:
        self.process = process
        self._said = said

    @property
    def pids(self) -> list[int]:
        """The supervisor, its keeper and its workers."""
        return [self.process.pid, *self.children]

    @property
    def children(self) -> list[int]:
        """The keeper, then the workers, in the order in which they were started."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        found = " ".join((task / "children").read_text() for task in tasks.iterdir())
        return sorted(int(pid) for pid in found.split())

    @property
    def cpu_seconds(self) -> float:
        """The processor time that all of its processes have used."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def megabytes_of_a_worker(self) -> float:
        """Return the memory of the largest worker; of what it shares with others, its part."""
        return max(_proportional(pid) for pid in self.children[1:]) / 1e6

    def wait_until_ready(self, processes: int) -> None:
        """Return when it has said its first line and all of its workers were forked."""
        until = time.monotonic() + SECONDS_TO_START
        while READY not in self.said or len(self.children) < processes + 1:
            if self.process.poll() is not None or time.monotonic() > until:
                raise Refusal(f"The workers did not start:\n{self.said[-2000:]}")
            time.sleep(0.02)

    @property
    def said(self) -> str:
        """What it has written so far."""
        return Path(self._said.name).read_text(errors="replace")

    def stop(self) -> None:
        """End it the polite way, and the other way where that takes too long."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@contextmanager
def crew(*options: str, processes: int = 1) -> Iterator[Crew]:
    """Start workers and give them when they are ready; they are gone afterwards."""
    command = [sys.executable, str(MANAGE), "once", "worker", "--processes", str(processes)]
    with tempfile.NamedTemporaryFile("w+", prefix="once-bench-worker-") as said:
        process = subprocess.Popen(
            [*command, "--no-startup-delay", *options],
            stdout=said, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        started = Crew(process, said)
        try:
            started.wait_until_ready(processes)
            yield started
        finally:
            started.stop()


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, or 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
