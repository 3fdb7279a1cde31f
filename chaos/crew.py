"""Who works: the processes of the project, which are killed, stopped and started again for real."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.errors import Refusal
from chaos.wish import CONCURRENCY, PROCESSES, Act, Wish

ROOT = Path(__file__).resolve().parent.parent
PR_SET_PDEATHSIG = 1
MARK = "ONCE_CHAOS_RUN"
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a run takes place: its directory, its mark, and what every process of it is told."""

    directory: Path
    mark: str
    database: dict[str, Any]
    lease: float

    @property
    def ledger(self) -> Path:
        """The file that the bodies write to."""
        return self.directory / "ledger.jsonl"

    @property
    def surroundings(self) -> dict[str, str]:
        """Return the environment of every process of the project."""
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "chaos.project.settings",
            "ONCE_CHAOS_DATABASE": json.dumps(self.database),
            "ONCE_CHAOS_LEASE": str(self.lease),
            "ONCE_CHAOS_LEDGER": str(self.ledger),
            MARK: self.mark,
        }

    def start(self, name: str, arguments: list[str], **said: Any) -> subprocess.Popen[bytes]:
        """Start a Python program of the project; it dies with this process."""
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-W", "ignore", *arguments],
                cwd=ROOT, env=self.surroundings, start_new_session=True,
                preexec_fn=die_with_the_conductor,
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **said},
            )  # fmt: skip

    def manage(self, *arguments: str) -> None:
        """Run a command of Django's to its end."""
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "django", *arguments],
            cwd=ROOT, env=self.surroundings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise Refusal(f"django {arguments[0]} failed:\n{made.stderr.strip()}")

    def left_over(self) -> list[int]:
        """Return the processes of this run that are still there."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
        return [pid for pid in found if pid != os.getpid() and is_alive(pid)]


class Group:
    """One `once worker` command with its keeper and workers: a host, in this play."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again."""
        self.process = self.stage.start(
            self.name,
            ["-m", "django", "once", "worker", "--worker-id", self.name, "--processes",
             str(PROCESSES), "--concurrency", str(CONCURRENCY), "--queues", "work,long",
             "--no-reload", "--drain-timeout", "30"],
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The supervisor."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its supervisor runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def children(self) -> list[int]:
        """Its keeper and its workers, the eldest first."""
        return children_of(self.pid) if self.is_alive else []

    @property
    def last_words(self) -> str:
        """The last lines of its log."""
        log = self.stage.directory / f"{self.name}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-8:])

    def status_within(self, seconds: float) -> int | None:
        """Return its exit status, or None when it has not ended by then."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class Feeder:
    """The process that brings the orders of one act."""

    def __init__(self, stage: Stage, wish: Wish) -> None:
        self.stage, self.wish = stage, wish
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, act: Act, until: float) -> None:
        """Start it: it brings what is missing of this act, until that moment."""
        self.process = self.stage.start(
            "feeder",
            ["-m", "chaos.project.feed", "--seed", str(self.wish.seed), "--first", str(act.first),
             "--last", str(act.last), "--until", f"{until:.1f}",
             "--mixture", act.mixture],
        )  # fmt: skip

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self.process.poll() if self.process is not None else 0


class Proxy:
    """The proxy in front of the server, which is told what to cut."""

    def __init__(self, directory: Path, dialect: str, socket: str) -> None:
        self.log = directory / "proxy.jsonl"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chaos.proxy", dialect, socket],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=log, preexec_fn=die_with_the_conductor,
                stderr=(directory / "proxy.log").open("ab"),
            )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Refusal("The proxy did not start.")
            time.sleep(0.05)
        self.port = int(self.said()[0]["port"])

    def said(self) -> list[dict[str, Any]]:
        """Return what it has told so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def tell(self, *words: object) -> None:
        """Tell it what to do."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Let it end."""
        self.process.kill()
        self.process.wait()


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is more than a zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def children_of(parent: int) -> list[int]:
    """Return the living children of a process, the eldest first."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            rest = stat.read_text().rpartition(")")[2].split()
            if int(rest[1]) == parent and rest[0] not in "ZX":
                found.append((int(rest[19]), int(stat.parent.name)))
    return [pid for _, pid in sorted(found)]


def die_with_the_conductor() -> None:
    """Be killed when the conductor is, so that nothing is left over."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
