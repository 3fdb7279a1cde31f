"""Three schedulers in a storm: killed, their server stopped, the clock of one set an hour off.

ONCE_TEST_STORM=200x60 makes it long: how many schedules, for how many seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from django_once.models import Job, Schedule, TaskExecution
from tests.app import tasks
from tests.app.models import Note
from tests.locks.test_crowd import FAKETIME
from tests.processes.server import Server, at_home_on
from tests.processes.workers import ROOT, names_of_databases, until
from tests.schedules.rows import now

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.slow,
    pytest.mark.engine,
]

SCHEDULES, SECONDS = map(int, os.environ.get("ONCE_TEST_STORM", "30x9").split("x"))
SCHEDULERS = 3
WRONG = ("+3600", "-3600", "+0", "+1800")
SECOND = timedelta(seconds=1)


class Crew:
    """The schedulers; the first of them lives on a host whose clock jumps."""

    def __init__(self, place: Path, databases: dict[str, object]) -> None:
        self.place, self.databases = place, databases
        self.clock = place / "clock"
        self.clock.write_text("+0\n")
        self.living = [self.began(number) for number in range(SCHEDULERS)]

    def began(self, number: int) -> subprocess.Popen[bytes]:
        told = {"databases": self.databases, "options": {}, "receivers": False}
        environment = {
            **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
            "ONCE_TEST_PROCESSES": json.dumps(told),
        }  # fmt: skip
        if number == 0 and FAKETIME.exists():
            environment |= {
                "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }  # fmt: skip
        module = "tests.schedules.on_a_wrong_host"
        return subprocess.Popen(
            [sys.executable, "-m", module, "once", "scheduler", "--database", "default"],
            cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
            stderr=(self.place / f"scheduler-{number}.log").open("a"),
        )  # fmt: skip

    def kill_one(self) -> None:
        number = random.randrange(SCHEDULERS)
        self.living[number].kill()
        self.living[number].wait()
        self.living[number] = self.began(number)

    def set_clock(self) -> None:
        self.clock.write_text(random.choice(WRONG) + "\n")

    def end(self) -> None:
        for one in self.living:
            one.kill()
            one.wait()


def stored(begins: datetime) -> dict[str, list[datetime]]:
    """Store schedules; return what each must name from its beginning on, by arithmetic alone."""
    rows, grids = [], {}
    for number in range(SCHEDULES):
        name, step = f"s{number}", 1 + number % 5
        policies = {"misfire": ("all", "coalesce", "skip")[number % 3], "overlap": "allow"}
        if number % 4 == 3:
            # On the wall, by the second, in a zone of its own.
            said = {"cron": f"*/{step} * * * * *", "timezone": "Asia/Kathmandu"}
            first = begins.replace(microsecond=0) + SECOND
            grids[name] = [
                first + n * SECOND
                for n in range(10 * SECONDS)
                if (first.second + n) % 60 % step == 0
            ]
        else:
            said = {"every": float(step), "starts_at": begins}
            grids[name] = [begins + n * step * SECOND for n in range(1, 10 * SECONDS)]
        rows.append(
            Schedule(
                name=name, task=tasks.note_moment.module_path, args=json.dumps([name]),
                rule_since=begins, next_due_at=grids[name][0], fires_at=grids[name][0],
                retention=None, **policies, **said,
            )
        )  # fmt: skip
    Schedule.objects.bulk_create(rows)
    return grids


def restart(server: Server) -> None:
    server.stop(random.choice((signal.SIGINT, signal.SIGQUIT)))
    time.sleep(random.uniform(0, 1))
    server.start()


def storm(crew: Crew, server: Server | None) -> Counter[str]:
    """Disturb them for the time of the test; return what was done to them."""
    done: Counter[str] = Counter()
    ends, restarts_at = time.monotonic() + SECONDS, time.monotonic() + SECONDS / 4
    while time.monotonic() < ends:
        time.sleep(random.uniform(0.3, 1.2))
        crew.kill_one()
        crew.set_clock()
        done.update(["kills", "clock steps"])
        if server is not None and time.monotonic() > restarts_at:
            restarts_at = time.monotonic() + max(4, SECONDS / 4)
            restart(server)
            connection.close()
            done["restarts"] += 1
    return done


@pytest.fixture
def server(transactional_db: None):
    if connection.vendor != "postgresql":
        yield None
        return
    own = Server()
    own.start()
    try:
        with at_home_on(own):
            yield own
    finally:
        own.remove()


@pytest.mark.timeout(SECONDS * 10 + 240)
def test_in_a_storm_each_moment_fires_once_or_is_recorded_with_a_reason(server, start, tmp_path):
    databases = {**names_of_databases(), **({"default": server.settings} if server else {})}
    worker = start("--queues", "*", databases=databases)
    grids = stored(now(2.0))
    crew = Crew(tmp_path, databases)
    try:
        done = storm(crew, server)
        reached = now()
        late = Schedule.objects.filter(next_due_at__lte=reached)
        until(lambda: not late.exists(), 60 + SECONDS, "every moment decided")
    finally:
        crew.end()
    until(lambda: not Job.objects.exclude(status="SUCCESSFUL").exists(), 60 + SECONDS, "all ran")
    assert worker.stop() == 0

    # The ledger is what the bodies wrote, each in the transaction of its job's end.
    ledger = Counter(Note.objects.values_list("text", flat=True))
    assert [text for text, times in ledger.items() if times > 1] == []
    told = Counter()
    for schedule in Schedule.objects.all():
        told += balance_of(schedule, grids[schedule.name], ledger)
    print(f"{dict(done)} {dict(told)}")
    assert told["ran"] == sum(ledger.values()) == Job.objects.count()
    assert verified() == told


def balance_of(schedule: Schedule, grid: list[datetime], ledger: Counter[str]) -> Counter[str]:
    """Hold the records of a schedule against its grid and the ledger; return their sums."""
    due = [moment for moment in grid if schedule.next_due_at > moment]
    records = {one.due_at: one for one in TaskExecution.objects.filter(schedule=schedule)}
    assert sorted(records) == due, schedule.name
    sums: Counter[str] = Counter()
    for moment, record in records.items():
        has_run = f"{schedule.name} {moment.astimezone(UTC).isoformat()}" in ledger
        if record.status == TaskExecution.SKIPPED:
            assert (has_run, record.reason != "", record.job) == (False, True, None)
            sums[record.reason] += 1
        else:
            assert (has_run, record.job is not None) == (True, True)
            sums["ran"] += 1
    return sums


def verified() -> Counter[str]:
    """Return what `once verify` says of all schedules, which must balance."""
    from io import StringIO

    from django.core.management import call_command

    out = StringIO()
    call_command("once", "verify", "--since", "1h", "--json", stdout=out)
    said = json.loads(out.getvalue())
    assert said["balanced"], [one for one in said["schedules"] if one["missing"] or one["doubled"]]
    sums: Counter[str] = Counter()
    for one in said["schedules"]:
        sums["ran"] += one["fired"]
        sums.update(one["skipped"])
        assert one["expected"] == one["fired"] + sum(one["skipped"].values())
    return sums
