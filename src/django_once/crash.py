"""Named points at which a test may let a process die, stop or raise; nothing at all otherwise.

    ONCE_CRASH_POINT=settle.committed:kill:3

kills the process with SIGKILL when it passes `settle.committed` for the third time; `stop` sends it
SIGSTOP, `end` SIGTERM, `raise` raises `Crashed`. Each process counts for itself; with a path in
ONCE_CRASH_FUSE only the first one springs, since that makes the file. Without the variable a point
costs one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

VARIABLE: Final = "ONCE_CRASH_POINT"
FUSE: Final = "ONCE_CRASH_FUSE"
SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "end": signal.SIGTERM}
ACTIONS: Final = (*SIGNALS, "raise")


class Crashed(BaseException):
    """What an armed point raises: no body and no loop expects it."""


class Trap:
    """One armed point: what happens there, and at which passage."""

    def __init__(self, said: str) -> None:
        self.name, _, rest = said.partition(":")
        action, _, passage = rest.partition(":")
        self.action = action or "kill"
        self._left = int(passage or 1)
        if self.action not in ACTIONS or not self.name:
            raise ValueError(f"{VARIABLE} is point:{'|'.join(ACTIONS)}:passage, got {said!r}.")
        self._counting = threading.Lock()

    def passed(self, name: str) -> None:
        """Spring when this point is passed for the time that was asked for."""
        if name != self.name:
            return
        with self._counting:
            self._left -= 1
            if self._left:
                return
        if not _is_first():
            return
        if self.action == "raise":
            raise Crashed(name)
        os.kill(os.getpid(), SIGNALS[self.action])


def _is_first() -> bool:
    """Return whether no other process has sprung; make it known that this one has."""
    fuse = os.environ.get(FUSE)
    if not fuse:
        return True
    try:
        os.close(os.open(fuse, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


_trap: Trap | None = Trap(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def arm(said: str | None) -> None:
    """Arm a point in this process, as the variable would; None disarms. For tests only."""
    global _trap
    _trap = Trap(said) if said else None


def crash_point(name: str) -> None:
    """Pass a named point."""
    if _trap is not None:
        _trap.passed(name)
