"""A server of the run's own that can be stopped as a fault asks, and started again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chaos.errors import Refusal
from tools.errors import Refusal as Missing
from tools.servers.harness import Harness, Running
from tools.servers.kind import Kind

SECONDS_TO_START = 60.0


class Durable:
    """One server, its place and the command that started it."""

    # What replaces the command's own options, so that an acknowledged commit survives a crash.
    options: Sequence[str] = ()

    def __init__(self, harness: Harness, kind: Kind) -> None:
        binaries = kind.installed()
        if not binaries:
            raise Refusal(f"No {kind.name} is installed that could be started here: {kind.remedy}.")
        try:
            self.address = kind.start(binaries[0], harness)
        except Missing as refusal:
            raise Refusal(f"{kind.name} could not be started: {refusal}") from refusal
        self._harness = harness
        self._running: Running = harness.running[-1]
        arguments: Any = self._running.process.args
        self._argv = [*arguments, *self.options]
        self.place = self._running.place

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._running.process.pid

    def has_answered(self) -> bool:
        """Return whether the server takes connections."""
        raise NotImplementedError

    def stop(self, number: int) -> None:
        """Send this signal to the server and see it dead."""
        self._running.process.send_signal(number)
        self._running.process.wait(60)

    def start(self) -> None:
        """Start it again, in the same place; it recovers by itself."""
        with (self.place / "server.log").open("ab") as log:
            process = subprocess.Popen(
                self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.place, start_new_session=True,
            )  # fmt: skip
        self._running.process = process
        self._running.page.unlink(missing_ok=True)
        self._running.page = self._harness.ledger.record(process.pid, self.place)
        until = time.monotonic() + SECONDS_TO_START
        while not self.has_answered():
            if process.poll() is not None or time.monotonic() > until:
                said = (self.place / "server.log").read_text(errors="replace")[-500:]
                raise Refusal(f"The server did not come back:\n{said}")
            time.sleep(0.02)


@contextmanager
def harness() -> Iterator[Harness]:
    """Give what starts servers; it stops them whatever happens."""
    with Harness() as found:
        yield found
