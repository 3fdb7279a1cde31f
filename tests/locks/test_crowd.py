"""Many processes and few locks, while some are killed, paused, and wrong about the time.

On PostgreSQL the server is one of its own, which is stopped and started again meanwhile.
ONCE_TEST_CROWD=16x10000x50 makes it long: processes, acquisitions of each, names.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from django_once.locks import lock
from django_once.models import Lock
from tests.app.models import Report
from tests.processes.server import Server, at_home_on
from tests.processes.workers import ROOT, names_of_databases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PROCESSES, ROUNDS, NAMES = map(int, os.environ.get("ONCE_TEST_CROWD", "4x120x5").split("x"))
LEASE = 1.0
RESTARTS_EVERY = 15 if "ONCE_TEST_CROWD" in os.environ else 4
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server | None]:
    """A server that may be stopped; None where there is none."""
    with ExitStack() as stack:
        if connection.vendor != "postgresql":
            yield None
            return
        own = Server()
        stack.callback(own.remove)
        own.start()
        stack.enter_context(at_home_on(own))
        yield own


def began(
    log: Path, rounds: int, databases: dict[str, Any], offset: int = 0
) -> subprocess.Popen[bytes]:
    """Start one of the crowd, on a host whose clock is so many seconds wrong."""
    told = {"databases": databases, "options": {}, "receivers": False}
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
        "ONCE_TEST_PROCESSES": json.dumps(told),
    }  # fmt: skip
    if offset and FAKETIME.exists():
        environment |= {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{offset:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "tests.locks.crowd", str(log), str(NAMES), str(rounds), str(LEASE)],
        cwd=ROOT, env=environment, stderr=log.with_suffix(".err").open("a"),
    )  # fmt: skip


def offset_of(number: int) -> int:
    """Return how wrong a host's clock is: ten minutes, both ways. SQLite has one host."""
    return 0 if connection.vendor == "sqlite" else (0, 600, -600)[number % 3]


def pauses(crowd: list[subprocess.Popen[bytes]]) -> None:
    """Stop one for longer than a lease, and let it go on."""
    victim = random.choice(crowd)
    if victim.poll() is None:
        victim.send_signal(signal.SIGSTOP)
        time.sleep(LEASE * 1.3)
        victim.send_signal(signal.SIGCONT)


def restarts(server: Server, turn: int) -> None:
    """Stop the server, politely or as if the power failed, and start it again."""
    server.stop(signal.SIGINT if turn % 2 else signal.SIGQUIT)
    time.sleep(random.uniform(0, LEASE))
    server.start()


@pytest.mark.timeout(3600)
def test_no_two_hold_one_lock_whatever_happens_to_them(server, tmp_path):
    Report.objects.bulk_create([Report(pk=1 + number, body="") for number in range(NAMES)])
    databases = {**names_of_databases(), **({"default": server.settings} if server else {})}
    logs = [tmp_path / f"{number}.log" for number in range(PROCESSES)]
    crowd = [began(log, ROUNDS, databases, offset_of(number)) for number, log in enumerate(logs)]
    done: Counter[str] = Counter()
    began_at = time.monotonic()
    try:
        while any(one.poll() is None for one in crowd):
            time.sleep(random.uniform(0.2, 0.5))
            done["pauses"] += 1
            pauses(crowd)
            number = done["pauses"] % PROCESSES
            if crowd[number].poll() is None and done["pauses"] <= 2 * PROCESSES:
                crowd[number].kill()
                crowd[number].wait()
                crowd[number] = began(logs[number], ROUNDS // 2, databases, offset_of(number))
                done["kills"] += 1
            if server and done["pauses"] % RESTARTS_EVERY == 3:
                restarts(server, done["restarts"])
                done["restarts"] += 1
    finally:
        for one in crowd:
            one.kill()
            one.wait()
        connection.close()

    said = [json.loads(line) for log in logs for line in lines(log)]
    done.update(one["what"] for one in said)
    print(f"{time.monotonic() - began_at:.0f} s: {dict(done)}")
    assert all(one.returncode == 0 for one in crowd), [
        log.with_suffix(".err").read_text()[-2000:] for log in logs
    ]
    assert sum(one["what"] == "held" for one in said) >= PROCESSES * ROUNDS // 2
    by_name = defaultdict(list)
    for one in said:
        by_name[one["name"]].append(one)
    for name, known in by_name.items():
        assert overlaps(known) == []
        assert late_writes(known) == []
        assert repeated_fences(known) == []
        assert Lock.objects.get(pk=f"name-{name}").fence >= max(one["fence"] for one in known)


def lines(log: Path) -> list[str]:
    """Return what was written to the end: a killed process may leave half a line."""
    return [line for line in log.read_text().splitlines() if line.endswith("}")]


def overlaps(known):
    """Return the pairs of holdings that were both valid at one moment."""
    held = sorted((one for one in known if one["what"] == "held"), key=lambda one: one["fence"])
    return [(one, other) for one, other in pairwise(held) if other["from"] < one["until"]]


def late_writes(known):
    """Return the writes that were asked for after one with a higher fence had been made."""
    wrote = sorted((one for one in known if one["what"] == "wrote"), key=lambda one: one["until"])
    ends = [one["until"] for one in wrote]
    highest = list(accumulate((one["fence"] for one in wrote), max))
    found = []
    for one in wrote:
        before = bisect_left(ends, one["asked"])
        if before and one["fence"] < highest[before - 1]:
            found.append(one)
    return found


def repeated_fences(known):
    """Return the fences that two holders were given."""
    taken = [one["fence"] for one in known if one["what"] == "taken"]
    return sorted(fence for fence in set(taken) if taken.count(fence) > 1)


def test_the_checks_would_find_their_breach():
    held = {"what": "held", "pid": 1}
    wrote = {"what": "wrote", "pid": 1}

    assert overlaps([{**held, "fence": 1, "from": 0, "until": 5},
                     {**held, "fence": 2, "from": 4, "until": 6}])  # fmt: skip
    assert late_writes([{**wrote, "fence": 2, "asked": 1, "until": 2},
                        {**wrote, "fence": 1, "asked": 3, "until": 4}])  # fmt: skip
    # Asked for before the other had been made, and answered long after: whose answer was late.
    assert late_writes([{**wrote, "fence": 2, "asked": 1, "until": 2},
                        {**wrote, "fence": 3, "asked": 3, "until": 4},
                        {**wrote, "fence": 1, "asked": 1, "until": 5}]) == []  # fmt: skip
    assert repeated_fences([{"what": "taken", "fence": 1}] * 2) == [1]


def test_a_dead_holders_lock_is_free_a_moment_after_its_lease(tmp_path):
    log = tmp_path / "dead.log"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(log)], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
             "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
             "ONCE_TEST_PROCESSES": json.dumps(
                 {"databases": names_of_databases(), "options": {}, "receivers": False})},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        holder.kill()
        holder.wait()
    died = time.monotonic()

    with lock("export", wait="20s") as held:
        waited = time.monotonic() - died

    assert held.fence == 2
    assert waited < 2.0 + 1.0


HOLDS = """
import sys, time, django
django.setup()
from django_once.locks import lock
held = lock("export", lease=2).acquire()
open(sys.argv[1], "w").write(str(held.fence))
time.sleep(60)
"""
