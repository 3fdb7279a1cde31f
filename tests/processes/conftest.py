"""Workers for the tests of the processes, and the ledger that their bodies write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.processes.ledger import PATH, Ledger
from tests.processes.workers import Command


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv(PATH, str(tmp_path / "ledger"))
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def start(
    transactional_db: None, tmp_path: Path, ledger: Ledger
) -> Iterator[Callable[..., Command]]:
    """Return what starts a worker's command on the database of this test."""
    commands: list[Command] = []
    numbers = count(1)

    def begin(*flags: str, **said: Any) -> Command:
        log = tmp_path / f"worker-{next(numbers)}.log"
        commands.append(Command(log, ledger.path, flags, said))
        return commands[-1]

    yield begin
    for command in commands:
        command.clear_away()


@pytest.fixture
def worker(start: Callable[..., Command]) -> Command:
    """A worker with the usual settings that has looked for work."""
    return start().ready()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file for which bodies wait; touching it lets them go on."""
    return tmp_path / "gate"
