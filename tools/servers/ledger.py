"""The ledger: which processes and directories a run has made, so that the next one can clear up.

Each has a file of its own, written when it starts and removed when it ends. A
file whose owner is gone names something left over by a run that crashed. A pid
alone proves nothing, for pids come back: the time of its start must fit too.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PREFIX = "once-"


@dataclass(frozen=True)
class Ledger:
    """A directory with a file for each process that runs."""

    directory: Path

    def record(self, pid: int, place: Path | None) -> Path:
        """Write down a process of ours and the directory it works in; return the page."""
        self.directory.mkdir(parents=True, exist_ok=True)
        page = self.directory / ("%d.json" % pid)
        facts = {
            "owner": os.getpid(),
            "owner_began": began(os.getpid()),
            "pid": pid,
            "began": began(pid),
            "place": str(place) if place else "",
        }
        unfinished = page.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(facts))
        os.replace(str(unfinished), str(page))
        return page

    def reap(self) -> int:
        """End what runs that crashed have left over, and return how many processes that were."""
        ended = 0
        for page in sorted(self.directory.glob("*.json")):
            try:
                facts = json.loads(page.read_text())
                if is_same(facts["owner"], facts["owner_began"]):
                    continue
                if is_same(facts["pid"], facts["began"]):
                    kill(facts["pid"])
                    ended += 1
                remove_place(facts["place"])
            except (OSError, ValueError, KeyError, TypeError):
                pass
            with contextlib.suppress(FileNotFoundError):
                page.unlink()
        return ended


def began(pid: int) -> str:
    """Return what differs between processes of one pid: the start; nothing if there is none."""
    try:
        # After the name, which may hold anything, the start is the twentieth word.
        words = Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
        return "" if words[0] == "Z" else words[19]
    except (OSError, IndexError):
        pass
    if os.path.isdir("/proc/self"):
        return ""
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], stdout=subprocess.PIPE, check=False
    )
    return listed.stdout.decode().strip()


def is_same(pid: int, since: str) -> bool:
    return bool(since) and began(pid) == since


def kill(pid: int, seconds: float = 5) -> None:
    """End a process and its group: at first politely, then for certain."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number) if os.getpgid(pid) == pid else os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + seconds
        while began(pid) and time.monotonic() < deadline:
            time.sleep(0.02)


def remove_place(place: str) -> None:
    """Remove a temporary directory of ours, and nothing that does not look like one."""
    path = Path(place)
    roots = {Path(root).resolve() for root in (tempfile.gettempdir(), "/tmp", "/var/tmp")}
    if place and path.name.startswith(PREFIX) and path.resolve().parent in roots:
        shutil.rmtree(str(path), ignore_errors=True)
