"""Reload in development: notices changed sources, and starts anew what can be loaded.

Who saves a file that is half written wants to see the error, and the worker back when it is mended.
So the same command is rehearsed first, in a process of its own that ends before it would start
anything: the old workers go on until the new code has been loaded once without an error.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from django.utils.autoreload import iter_all_python_module_files

from django_once.processes import farewell
from django_once.processes.plan import Plan

PAUSE: Final = 1.0
REHEARSAL: Final = "ONCE_WORKER_REHEARSAL"


class Sources:
    """The sources of all loaded modules, and when each was changed."""

    def __init__(self) -> None:
        self._changed = self._times()
        self._look_at = 0.0

    def changed(self) -> Path | None:
        """Return a file that has changed since it was asked for last; looks once a second."""
        if time.monotonic() < self._look_at:
            return None
        self._look_at = time.monotonic() + PAUSE
        times = self._times()
        # A file that an editor replaces is missing for a moment: that says nothing yet.
        newer = [path for path, at in times.items() if self._changed.get(path, at) != at]
        self._changed.update(times)
        return newer[0] if newer else None

    def _times(self) -> dict[Path, float]:
        times = {}
        for path in iter_all_python_module_files():
            try:
                times[path] = path.stat().st_mtime
            except OSError:
                continue
        return times


class Code:
    """The code that these processes run, and whether newer can take its place."""

    def __init__(self, plan: Plan) -> None:
        self._sources = Sources()
        self._rehearsal: Rehearsal | None = None
        self._plan = plan
        self._changed: Path | None = None

    def look(self) -> None:
        """Rehearse the new code when a file has changed."""
        if self._rehearsal is None:
            self._changed = self._sources.changed()
            if self._changed is not None:
                self._rehearsal = Rehearsal()

    def is_rehearsed_by(self, pid: int) -> bool:
        """Return whether this child is the rehearsal."""
        return self._rehearsal is not None and self._rehearsal.pid == pid

    def may_be_loaded(self, status: int) -> bool:
        """Say how the rehearsal ended; return whether it was without an error."""
        assert self._rehearsal is not None
        errors, self._rehearsal = self._rehearsal.errors(), None
        if status:
            print(errors + farewell.not_starting_anew(self._plan, self._changed), flush=True)
        else:
            print(farewell.starting_anew(self._plan, self._changed), flush=True)
        return status == 0

    def start_anew(self) -> None:
        """Become the same command with the new code, as soon as that can be loaded."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # Bodies had time to end, and somebody to change a file once more.
        is_sound = True
        while (changed := self._sources.changed()) is not None or not is_sound:
            if changed is not None:
                self._changed, self._rehearsal = changed, Rehearsal()
                is_sound = self.may_be_loaded(os.waitpid(self._rehearsal.pid, 0)[1])
            time.sleep(PAUSE)
        os.execv(sys.executable, _command())


class Rehearsal:
    """The same command in a process that ends before it would start anything."""

    def __init__(self) -> None:
        self._errors, path = tempfile.mkstemp()
        os.unlink(path)
        actions = [
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, self._errors, 2),
        ]
        self.pid = os.posix_spawn(
            sys.executable, _command(), {**os.environ, REHEARSAL: "1"},
            file_actions=actions, setpgroup=0,
        )  # fmt: skip

    def errors(self) -> str:
        """Return what it said was wrong, once it has ended."""
        with os.fdopen(self._errors, "rb") as file:
            file.seek(0)
            return file.read().decode(errors="replace")


def is_rehearsal() -> bool:
    """Return whether this process only tries whether the code can be loaded."""
    return REHEARSAL in os.environ


def _command() -> list[str]:
    return [sys.executable, *sys.orig_argv[1:]]
