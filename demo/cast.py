"""Who plays: the web process and the worker commands, real processes that can be killed for real."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PROJECT = Path(__file__).resolve().parent / "project"
PR_SET_PDEATHSIG = 1


def surroundings(url: str, directory: Path) -> dict[str, str]:
    """Return the environment of every process of the shop."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "utf-8",
        "DJANGO_SETTINGS_MODULE": "settings",
        "ONCE_DEMO_DATABASE_URL": url,
        "ONCE_DEMO_OUTBOX": str(directory / "outbox.jsonl"),
    }


class Actor:
    """One process of the shop, which can be started again."""

    def __init__(self, name: str, arguments: list[str], around: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.arguments = arguments
        self.log = log
        self._around = around
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process as it was started last."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it, or start it again."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", *self.arguments],
                cwd=PROJECT,
                env=dict(self._around),
                stdin=subprocess.PIPE,
                stdout=self._output(log),
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_the_conductor,
            )

    def _output(self, log: IO[bytes]) -> int | IO[bytes]:
        return log

    def kill(self) -> None:
        """Kill it with -9 and see it dead."""
        assert self.process is not None
        slay(self.process.pid)
        self.process.wait()

    def ask_to_end(self) -> None:
        """Send the signal at which a worker drains; a second one would make it hurry."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def status_within(self, seconds: float) -> int | None:
        """Return its exit status, or None when it has not ended by then."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill_all(self) -> None:
        """Kill it and its children in one moment, as a power cut does."""
        if self.process is None:
            return
        # Stopped first, so that none of them sees another die, or starts one more.
        send(self.process.pid, signal.SIGSTOP)
        children = children_of(self.process.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in children:
                send(pid, number)
        send(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Web(Actor):
    """The web process, whose words the conductor reads."""

    def __init__(self, around: Mapping[str, str], directory: Path) -> None:
        super().__init__("web", [], around, directory / "web.log")
        self._half = b""

    def open(self, orders: int, per_second: float) -> None:
        """Start it: it places the orders that are not there yet, at this pace."""
        self.arguments = ["web.py", "--orders", str(orders), "--per-second", f"{per_second:.3f}"]
        self._half = b""
        self.start()
        assert self.process is not None
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def _output(self, log: IO[bytes]) -> int:
        return subprocess.PIPE

    def hold(self) -> None:
        """Let its next order stop between INSERT and COMMIT."""
        os.kill(self.pid, signal.SIGUSR1)

    def words(self) -> list[list[str]]:
        """Return the lines it has said since the last call, each as words."""
        if self.process is None or self.process.stdout is None:
            return []
        said = self.process.stdout.read() or b""
        *lines, self._half = (self._half + said).split(b"\n")
        return [line.decode().split() for line in lines if line.strip()]


class Host(Actor):
    """One `manage.py once worker` command with its keeper and workers: a machine, in this play."""

    def __init__(
        self, name: str, processes: int, around: Mapping[str, str], directory: Path
    ) -> None:
        arguments = [
            "manage.py", "once", "worker", "--worker-id", name, "--processes", str(processes),
            "--concurrency", "4", "--interval", "0.1",
        ]  # fmt: skip
        super().__init__(name, arguments, around, directory / f"{name}.log")


def slay(pid: int) -> None:
    """Kill a process with -9, if it is still there."""
    send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def children_of(parent: int) -> list[int]:
    """Return the processes whose parent this is."""
    try:
        return [pid for pid, above in parents_by_proc() if above == parent]
    except FileNotFoundError:
        said = subprocess.run(
            ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        pairs = (line.split() for line in said.stdout.splitlines())
        return [int(pid) for pid, above in pairs if int(above) == parent]


def parents_by_proc() -> list[tuple[int, int]]:
    """Return every process with its parent, as Linux shows them."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                stat = Path(f"/proc/{name}/stat").read_text()
                # The name in parentheses may hold anything; the state and the parent follow it.
                found.append((int(name), int(stat.rpartition(")")[2].split()[1])))
    return found


def die_with_the_conductor() -> None:
    """Be killed when the conductor is, so that no worker is left over."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
