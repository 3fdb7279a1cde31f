"""What bodies did, as lines of a file that is only ever appended to: it outlives every process."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PATH = "ONCE_TEST_LEDGER"


@dataclass(frozen=True)
class Line:
    """One thing a body did."""

    what: str
    tag: str
    pid: int
    thread: str
    at: float


def write(what: str, tag: str) -> None:
    """Append one line, whole: by one system call, at the end, whoever else writes."""
    line = f"{what} {tag} {os.getpid()} {threading.current_thread().name} {time.monotonic()}\n"
    file = os.open(os.environ[PATH], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


class Ledger:
    """The lines that this test's bodies wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_this_process(cls) -> Ledger:
        return cls(Path(os.environ[PATH]))

    def lines(self, what: str | None = None, tag: str | None = None) -> list[Line]:
        text = self.path.read_text() if self.path.exists() else ""
        words = [line.split() for line in text.splitlines()]
        lines = [Line(w[0], w[1], int(w[2]), w[3], float(w[4])) for w in words]
        return [
            line
            for line in lines
            if (what is None or line.what == what) and (tag is None or line.tag == tag)
        ]

    def tags(self, what: str = "ran") -> list[str]:
        return [line.tag for line in self.lines(what)]

    def count(self, what: str, tag: str | None = None) -> int:
        return len(self.lines(what, tag))
