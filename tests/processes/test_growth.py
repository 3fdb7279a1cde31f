"""A day in miniature: at a high rate nothing grows, neither memory nor files nor connections.

ONCE_TEST_SOAK_SECONDS says how long; the first third is for what grows once.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection

from django_once.models import Job
from tests.processes.tasks import fail, nothing, nothing_later
from tests.processes.workers import Command, until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts by Linux's /proc"),
    pytest.mark.timeout(1200),
]

SECONDS = float(os.environ.get("ONCE_TEST_SOAK_SECONDS", "12"))
WAVE = 600


@dataclass
class Use:
    """What a command's processes hold, added up."""

    kilobytes: int
    files: int
    threads: int
    connections: int


def use_of(command: Command) -> Use:
    use = Use(0, 0, 0, 0)
    for pid in (command.pid, *command.children):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        use.kilobytes += int(status["VmRSS"].split()[0])
        use.threads += int(status["Threads"])
        use.files += len(list(Path(f"/proc/{pid}/fd").iterdir()))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            use.connections = cursor.fetchone()[0]
    return use


def wave() -> None:
    """Enqueue many jobs of every kind, wait for all of them, and clear them away."""
    nothing.enqueue_many([((n,), {}) for n in range(WAVE)])
    nothing_later.enqueue_many([((n,), {}) for n in range(WAVE // 2)])
    fail.enqueue_many([((n,), {}) for n in range(WAVE // 20)])
    unended = Job.objects.filter(status__in=(Job.READY, Job.RUNNING))
    until(lambda: not unended.exists(), 60, "the end of a wave")
    Job.objects.all().delete()


def test_nothing_grows(start, capsys):
    command = start("--processes", "2", environment={"ONCE_TEST_QUIET": "1"}).ready(workers=2)
    began, waves, before = time.monotonic(), 0, None
    while time.monotonic() < began + SECONDS:
        wave()
        waves += 1
        if before is None and time.monotonic() > began + SECONDS / 3:
            before, counted = use_of(command), waves
    assert before is not None
    after = use_of(command)
    jobs = (waves - counted) * WAVE * 1.55

    with capsys.disabled():
        print(f"\n{jobs:.0f} jobs: {before} -> {after}")
    assert waves > counted
    # Threads of event loops and the janitor's connection come and go.
    for name, slack in (("files", 10), ("threads", 6), ("connections", 6)):
        assert getattr(after, name) <= getattr(before, name) + slack, (name, before, after)
    assert after.kilobytes <= before.kilobytes * 1.05 + 4_000
    assert command.stop() == 0
