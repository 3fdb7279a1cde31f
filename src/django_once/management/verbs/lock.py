"""`once lock NAME -- command…`: run a shell command while nobody else runs under that name.

The command finds the fence in its environment. Signals go on to it; its exit status comes back,
or 128 and the signal that ended it. When the lock is lost the command is asked to end, and killed
after a while: what it still writes must carry the fence to be refused.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_once import clock
from django_once.errors import LockHeld, LockLost
from django_once.locks import Held, lock
from django_once.locks.place import database_of_locks
from django_once.management.places import OK, USAGE, add_backend, backend_named
from django_once.management.screen import Screen
from django_once.management.selection import span

# What a shell says of a command that it cannot find, or not run.
NOT_FOUND, NOT_RUNNABLE, BY_SIGNAL = 127, 126, 128
# Of sysexits.h: try again later.
IS_HELD: Final = 75
WAS_LOST: Final = 76
FORWARDED: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
PR_SET_PDEATHSIG: Final = 1


def add_arguments(parser: CommandParser) -> None:
    """Declare the lock and the command."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the name of the lock")
    add("--lease", default="60s", metavar="60s", help="how long it outlives a dead holder")
    add(
        "--wait", default="0", metavar="5m", help="how long to wait for another holder (default: 0)"
    )
    add(
        "--if-held", choices=("fail", "skip"), default="fail",
        help=f"what to do when it is held: exit with status {IS_HELD}, or with 0",
    )  # fmt: skip
    add("--kill-after", default="10s", metavar="10s", help="after a loss: from SIGTERM to SIGKILL")
    parser.usage = "%(prog)s NAME [options] -- COMMAND [ARGUMENT …]"
    _leave_the_command_alone(parser)
    add_backend(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Run the command under the lock and return its exit status."""
    command = options["command"]
    if not command:
        raise CommandError(
            "Say what to run: once lock NAME -- COMMAND [ARGUMENT …]", returncode=USAGE
        )
    alias = options["backend"]
    database = backend_named(alias).database if alias else database_of_locks()
    patience = clock.duration(options["kill_after"], "--kill-after").total_seconds()
    taking = lock(
        options["name"], span(options["lease"], "--lease") or "60s",
        span(options["wait"], "--wait") or 0, using=database,
    )  # fmt: skip
    try:
        with taking as held:
            return Wrapped(screen, held, patience).run(command)
    except LockHeld as error:
        screen.tell(str(error))
        return OK if options["if_held"] == "skip" else IS_HELD
    except LockLost as error:
        screen.tell(str(error))
        return WAS_LOST


def _leave_the_command_alone(parser: Any) -> None:
    """Take what stands behind `--` as it is: argparse would look for our options there too."""
    parse = parser.parse_known_args

    def parse_before_it(words: Any = None, namespace: Any = None) -> Any:
        said = list(sys.argv[1:] if words is None else words)
        end = said.index("--") if "--" in said else len(said)
        found, unknown = parse(said[:end], namespace)
        found.command = said[end + 1 :]
        return found, unknown

    parser.parse_known_args = parse_before_it


class Wrapped:
    """One command under a held lock."""

    def __init__(self, screen: Screen, held: Held, patience: float) -> None:
        self.screen = screen
        self.held = held
        self.patience = patience
        # A command on a terminal must stay in its foreground group, which Ctrl-C reaches itself.
        self.is_on_a_terminal = sys.stdin.isatty()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str]) -> int:
        """Run the command to its end."""
        before = {
            getattr(signal, name): signal.signal(getattr(signal, name), self._forward)
            for name in FORWARDED
            if hasattr(signal, name)
        }
        try:
            self._child = self._started(command)
            if self._child is None:
                return NOT_FOUND
            threading.Thread(target=self._end_when_lost, daemon=True).start()
            status = self._child.wait()
        except PermissionError as error:
            self.screen.tell(f"{command[0]}: {error.strerror}")
            return NOT_RUNNABLE
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return BY_SIGNAL - status if status < 0 else status

    def _started(self, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        environment = {**os.environ, "FENCE": str(self.held.fence), "ONCE_LOCK": self.held.name}
        try:
            return subprocess.Popen(
                command, env=environment, start_new_session=not self.is_on_a_terminal,
                preexec_fn=_dying_with(os.getpid()),
            )  # fmt: skip
        except FileNotFoundError as error:
            self.screen.tell(f"{command[0]}: {error.strerror}")
            return None

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            raise SystemExit(BY_SIGNAL + number)
        if not (self.is_on_a_terminal and number in (signal.SIGINT, signal.SIGQUIT)):
            self._send(number)

    def _end_when_lost(self) -> None:
        self.held.lost.wait()
        if self._child is None or self._child.poll() is not None:
            return
        self.screen.tell(f"Lock {self.held.name!r} was lost: the command is asked to end.")
        self._send(signal.SIGTERM)
        try:
            self._child.wait(self.patience)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        """Send a signal to the command, and to what it started, unless a terminal does that."""
        assert self._child is not None
        if self._child.poll() is not None:
            return
        if self.is_on_a_terminal:
            self._child.send_signal(number)
        else:
            os.killpg(self._child.pid, number)


def _dying_with(parent: int) -> Any:
    """Return what ties a command to this process: it must not outlive who renews its lock."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def tie() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(BY_SIGNAL + signal.SIGKILL)

    return tie
