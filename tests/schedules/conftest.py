"""What starts workers and schedulers as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes.conftest import ledger, start
from tests.processes.workers import ROOT, names_of_databases

__all__ = ["ledger", "schedulers", "start"]


@pytest.fixture
def schedulers(
    transactional_db: None, tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return what starts `once scheduler` on the database of this test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*flags: str, **environment: str) -> subprocess.Popen[bytes]:
        told = {"databases": names_of_databases(), "options": {}, "receivers": False}
        log = (tmp_path / f"scheduler-{len(started)}.log").open("w")
        command = [sys.executable, "-m", "django", "once", "scheduler", "--database", "default"]
        started.append(
            subprocess.Popen(
                [*command, *flags],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
                    "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
                    "ONCE_TEST_PROCESSES": json.dumps(told),
                    **environment,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
