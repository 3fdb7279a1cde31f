"""A forked child: tied to its parent, deaf to the terminal, woken through a pipe."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.db import connections

PR_SET_PDEATHSIG: Final = 1
EX_SOFTWARE: Final = 70
EX_CONFIG: Final = 78
SHOWING: Final = 0.2
HANDLED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT)


def fork(work: Callable[[], int], *, tied: bool = True) -> int:
    """Run `work` in a child process, whose exit status is what it returns; return the child's pid.

    The parent must have one thread and no open connection: a child would share both. A tied child
    dies with its parent, at once.
    """
    connections.close_all()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # Until the child has put away its parent's handlers, no signal may come: it would be taken
    # for one to the parent, and the child would not hear of it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    status = EX_SOFTWARE
    try:
        _settle_apart()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if tied:
            _tie_to(parent)
        status = work()
    except BaseException:  # noqa: BLE001 - the top of a process: tells, and ends it
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not sys.exit: threads that still run bodies must not hold the process.
        os._exit(status)


def _settle_apart() -> None:
    """Leave the terminal's signals to the parent; show all stacks at SIGQUIT."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    faulthandler.register(signal.SIGQUIT, all_threads=True, chain=False)


def _tie_to(parent: int) -> None:
    """Die when the parent dies, however that may be."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(EX_SOFTWARE)


def or_end_the_process(work: Callable[..., None], *args: object) -> Callable[[], None]:
    """Return work for a thread without which its process is worth nothing: if it raises, both end.

    The supervisor sees the death, gives back what was held, and starts another.
    """

    def guarded() -> None:
        try:
            work(*args)
        except BaseException:  # noqa: BLE001 - the top of a thread: tells, and ends its process
            sys.excepthook(*sys.exc_info())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EX_SOFTWARE)

    return guarded


class Wire:
    """A pipe whose bytes mean "look now"; any process that has it may write."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self._writing, False)

    def fileno(self) -> int:
        """Return what a selector waits for."""
        return self.reading

    def ring(self) -> None:
        """Wake whoever waits; a full pipe says enough."""
        try:
            os.write(self._writing, b"!")
        except BlockingIOError:
            return

    def wait(self, seconds: float) -> bool:
        """Sleep until woken, at most so long; return whether it was woken."""
        ready, _, _ = select.select([self.reading], [], [], max(0.0, seconds))
        return bool(ready) and self.clear()

    def clear(self) -> bool:
        """Forget what was rung; return whether there was anything."""
        try:
            return bool(os.read(self.reading, 65536))
        except BlockingIOError:
            return False


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def show_stacks(name: str, pid: int | None) -> None:
    """Let a process print the stacks of all its threads; wait a moment, or others mix with it."""
    if pid is None:
        return
    os.write(2, f"\nStacks of the {name}, pid {pid}:\n".encode())
    if pid == os.getpid():
        faulthandler.dump_traceback(all_threads=True)
    else:
        send(pid, signal.SIGQUIT)
        time.sleep(SHOWING)


def has_ended(child: int) -> bool:
    """Return whether a child of this process has ended; it is reaped then."""
    try:
        return bool(os.waitpid(child, os.WNOHANG)[0])
    except ChildProcessError:
        return True


def has_exited(pid: int, seconds: float) -> bool:
    """Return whether a process that is not a child of this one is gone, or goes within so long."""
    until = time.monotonic() + seconds
    while not _is_gone(pid):
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)
    return True


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # Dead, but not yet reaped by whoever inherited it: such a process runs nothing more.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except ProcessLookupError:
        return True
    except OSError:
        return False
