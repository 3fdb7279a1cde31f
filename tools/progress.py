"""One line per step, with its time; on a terminal the line moves while the step lasts."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import ClassVar

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_FRAMES = "|/-\\"


class Step:
    """A line that says what is being done, how far it is and how long it took.

    Used as a context manager. On a terminal it is redrawn; elsewhere it is
    printed once, when the step has ended. Of steps within a step, the innermost
    has the line.
    """

    open_steps: ClassVar[list[Step]] = []

    def __init__(self, text: str) -> None:
        self.text = text
        self.note = ""
        self.mark = ""
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._painter = threading.Thread(target=self._paint, daemon=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def __enter__(self) -> Step:
        self._began = time.monotonic()
        self.open_steps.append(self)
        if self._is_live:
            self._painter.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._ended.set()
        self.open_steps.remove(self)
        if self._is_live:
            self._painter.join()
            sys.stdout.write("\r\x1b[K")
        failed = kind is not None
        mark = self.mark or sign("✗" if failed else "✓", "x" if failed else "+")
        say("  %s %-58s %6.1f s  %s" % (mark, self.text, self.seconds, self.note))

    def _paint(self) -> None:
        frames, turn = sign(FRAMES, PLAIN_FRAMES), 0
        while not self._ended.wait(0.1):
            turn += 1
            if self.open_steps[-1:] != [self]:
                continue
            line = "  %s %-58s %6.1f s  %s" % (
                frames[turn % len(frames)],
                self.text,
                self.seconds,
                self.note,
            )
            sys.stdout.write("\r\x1b[K" + line[: width() - 1])
            sys.stdout.flush()


def say(text: str = "") -> None:
    """Print one line now, whatever the terminal's encoding makes of its signs."""
    encoding = sys.stdout.encoding or "ascii"
    print(text.encode(encoding, "replace").decode(encoding).rstrip(), flush=True)


def sign(fine: str, plain: str) -> str:
    """Return the fine sign where the output can carry it, else the plain one."""
    try:
        fine.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return plain
    return fine


def width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 120
