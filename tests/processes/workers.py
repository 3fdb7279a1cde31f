"""Workers as processes of their own, and their ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connections

from django_once.models import Job
from django_once.models.worker import Worker

Fact = TypeVar("Fact")
ROOT = Path(__file__).parents[2]

# It is the same on every database.
on_one_database = pytest.mark.slow


# How long a fact may take on a machine that has much else to do. No bound is proven by it.
PATIENCE = 60


def until(fact: Callable[[], Fact], seconds: float = PATIENCE, what: str = "") -> Fact:
    """Wait for a fact and return it."""
    deadline = time.monotonic() + seconds
    while not (found := fact()):
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {seconds} s: {what or fact}")
        time.sleep(0.01)
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            rest = stat.read_text().rpartition(")")[2].split()
            if int(rest[1]) == pid and rest[0] not in "ZX":
                found.append(int(stat.parent.name))
    return sorted(found)


def send(number: int, *pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def names_of_databases() -> dict[str, dict[str, Any]]:
    return {alias: {"NAME": connections[alias].settings_dict["NAME"]} for alias in connections}


class Command:
    """One `manage.py once worker`, or `listen`: a supervisor, its keeper and its workers."""

    def __init__(
        self, log: Path, ledger: Path, flags: tuple[str, ...], said: dict[str, Any]
    ) -> None:
        self.log = log
        databases = names_of_databases()
        for alias, changes in said.pop("databases", {}).items():
            databases[alias].update(changes)
        options = {"LEASE": "3s", "POLL": "0.2s", **said.pop("options", {})}
        receivers, environment = said.pop("receivers", False), said.pop("environment", {})
        aside = () if said.pop("scheduler", False) else ("--no-scheduler",)
        verb = said.pop("verb", "worker")
        words = ("worker", "--no-reload", *aside) if verb == "worker" else (verb,)
        assert not said
        told = {"databases": databases, "options": options, "receivers": receivers}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "django", "once", *words, *flags],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
                "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
                "ONCE_TEST_PROCESSES": json.dumps(told),
                "ONCE_TEST_LEDGER": str(ledger),
                **environment,
            },
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._seen: set[int] = set()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def last_line(self) -> str:
        return self.text.splitlines()[-1]

    @property
    def children(self) -> list[int]:
        found = children_of(self.pid)
        self._seen.update(found)
        return found

    @property
    def workers(self) -> list[int]:
        """The processes that run bodies: those of the children that have a row."""
        rows = Worker.objects.filter(stopped_at=None, lost_at=None).values_list("pid", flat=True)
        return sorted(set(rows) & set(self.children))

    @property
    def keeper(self) -> int:
        (keeper,) = until(lambda: sorted(set(self.children) - set(self.workers)), what="a keeper")
        return keeper

    def ready(self, workers: int = 1, seconds: float = PATIENCE) -> Command:
        """Wait until so many workers have registered themselves."""
        until(lambda: len(self.workers) >= workers or self.has_ended(), seconds, "workers")
        assert not self.has_ended(), self.text
        return self

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Still there after {seconds} s:\n{self.text[-3000:]}") from None

    def stop(self, number: int = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        self.send(number)
        return self.wait(seconds)

    def kill_all(self) -> None:
        """End every process of this command at once, the supervisor first."""
        pids = [self.pid, *self.children]
        send(signal.SIGKILL, *pids)
        self.process.wait()
        until(lambda: not any(map(is_alive, pids)), what="all dead")

    def clear_away(self) -> None:
        """Leave nothing behind, whatever the test did."""
        pids = {*self.children, *self._seen} if not self.has_ended() else set(self._seen)
        own = [pid for pid in pids if self._is_ours(pid)]
        send(signal.SIGKILL, self.pid, *own)
        send(signal.SIGCONT, self.pid, *own)
        self.process.wait(PATIENCE)
        until(lambda: not any(is_alive(pid) for pid in own), what="all dead")

    def _is_ours(self, pid: int) -> bool:
        """Return whether a process is of this command still, and no newer one of that number."""
        try:
            return (
                f"ONCE_TEST_LEDGER={self.log.parent}".encode()
                in Path(f"/proc/{pid}/environ").read_bytes()
            )
        except OSError:
            return False


def job(result: Any) -> Job:
    return Job.objects.using(result.task.get_backend().database).get(pk=result.id)


def has_ended(*results: Any) -> bool:
    return all(job(result).status in (Job.SUCCESSFUL, Job.FAILED) for result in results)


def ended(*results: Any, seconds: float = PATIENCE) -> list[Job]:
    """Wait until these jobs have ended; return their rows."""
    until(lambda: has_ended(*results), seconds, "ends of jobs")
    return [job(result) for result in results]
