"""Starting servers of our own, and stopping them whatever happens.

Each gets a directory in a temporary place with a short path (the path of a Unix
socket is limited to about 107 bytes), a session of its own, and a page in the
ledger. They hold nothing worth keeping, so they are stopped the quick way.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from tools.checkout import state_directory
from tools.children import environment
from tools.errors import Refusal
from tools.servers.account import Account
from tools.servers.ledger import PREFIX, Ledger, remove_place

LONGEST_DIRECTORY = 60
SECONDS_TO_START = 30
SECONDS_TO_STOP = 10


@dataclass
class Running:
    """A server that was started here."""

    name: str
    process: subprocess.Popen[bytes]
    place: Path
    page: Path
    farewell: signal.Signals


@dataclass
class Harness:
    """The servers of one run; leaving its with-block stops them all."""

    ledger: Ledger = field(default_factory=lambda: Ledger(state_directory() / "ledger"))
    running: list[Running] = field(default_factory=list)
    places: list[Path] = field(default_factory=list)

    def __enter__(self) -> Harness:
        self.ledger.reap()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop_all()

    def place_for(self, name: str, account: Account) -> Path:
        """Return a new directory that belongs to the account, with a short path."""
        root = next(
            (root for root in (tempfile.gettempdir(), "/tmp", "/var/tmp") if is_open(root)), "/tmp"
        )
        place = Path(tempfile.mkdtemp(prefix=PREFIX + name + "-", dir=root))
        self.places.append(place)
        account.give(place)
        return place

    def run(
        self, argv: Sequence[str], account: Account, place: Path, said: str = "", seconds: int = 60
    ) -> str:
        """Run a program of a server to its end, and return what it printed.

        Raises Refusal with its last line when it fails.
        """
        try:
            done = subprocess.run(
                account.prefixed(sys.executable, argv),
                input=said.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=str(place),
                env=environment({"HOME": str(place)}),
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Refusal(
                "%s did not end within %d s" % (os.path.basename(argv[0]), seconds)
            ) from None
        output = done.stdout.decode("utf-8", "replace")
        if done.returncode:
            raise Refusal("%s: %s" % (os.path.basename(argv[0]), last_line(output)))
        return output

    def start(
        self,
        argv: Sequence[str],
        account: Account,
        place: Path,
        answers: Callable[[], bool],
        farewell: signal.Signals = signal.SIGTERM,
    ) -> Running:
        """Start a server and return when it answers. Raises Refusal when it does not."""
        log = place / "server.log"
        with open(str(log), "wb") as output:
            process = subprocess.Popen(
                account.prefixed(sys.executable, argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=str(place),
                env=environment({"HOME": str(place)}),
                start_new_session=True,
            )
        page = self.ledger.record(process.pid, place)
        name = os.path.basename(argv[0])
        started = Running(name, process, place, page, farewell)
        self.running.append(started)
        deadline = time.monotonic() + SECONDS_TO_START
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                complaint = last_line(log.read_text(errors="replace"))
                self.stop(started)
                raise Refusal("%s did not start: %s" % (name, complaint))
            time.sleep(0.02)
        return started

    def stop_all(self) -> int:
        """Stop what was started here, remove its directories, return how many servers it was."""
        stopped = len(self.running)
        for server in list(self.running):
            self.stop(server)
        for place in self.places:
            remove_place(str(place))
        self.places.clear()
        return stopped

    def stop(self, server: Running) -> None:
        """Stop one server, by the pid that was recorded."""
        if server.process.poll() is None:
            server.process.send_signal(server.farewell)
            try:
                server.process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(server.process.pid, signal.SIGKILL)
                server.process.wait()
        self.running.remove(server)
        remove_place(str(server.place))
        with contextlib.suppress(FileNotFoundError):
            server.page.unlink()


def is_open(root: str) -> bool:
    """Say whether other accounts can work in this temporary directory, and its path is short."""
    if len(root) > LONGEST_DIRECTORY or not os.access(root, os.W_OK):
        return False
    path = Path(root).resolve()
    return os.getuid() != 0 or all(one.stat().st_mode & 0o001 for one in [path, *path.parents])


def reachable(tree: Path, account: Account, place: Path, beside: Sequence[Path] = ()) -> Path:
    """Return a tree of binaries that the account can read: the one given, or a copy of it.

    What stands beside it (libraries that are looked for by a relative path) is
    copied along, in the same relation.
    """
    if account.uid == os.getuid() or all(can_pass(one, account) for one in [tree, *tree.parents]):
        return tree
    copied = place / "binaries" / tree.parent.name
    copied.mkdir(parents=True)
    shutil.copytree(str(tree), str(copied / tree.name), symlinks=True)
    for one in beside:
        shutil.copytree(str(one), str(place / "binaries" / one.name), symlinks=True)
    for directory, names, files in os.walk(str(place / "binaries")):
        for name in [".", *names, *files]:
            os.chown(os.path.join(directory, name), account.uid, account.gid, follow_symlinks=False)
    return copied / tree.name


def can_pass(directory: Path, account: Account) -> bool:
    """Say whether an account may go through a directory, by its mode."""
    found = directory.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & 0o100)
    if found.st_gid == account.gid:
        return bool(found.st_mode & 0o010)
    return bool(found.st_mode & 0o001)


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
