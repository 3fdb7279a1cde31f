"""With real workers, a real pooler and a real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection

from django_once.contrib.prometheus.families import families
from django_once.contrib.prometheus.text import written
from django_once.contrib.prometheus.views import measured
from django_once.models import Figure
from tests.jobs import store
from tests.management.shell import command, in_shell
from tests.operate.exposition import judged
from tests.processes.conftest import gate, ledger, start, worker  # noqa: F401 - fixtures
from tests.processes.tasks import mark, note_once
from tests.processes.test_pooler import PROGRAM, pooler  # noqa: F401 - a fixture
from tests.processes.workers import ended

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.engine,
    pytest.mark.slow,
]


def test_workers_write_down_what_they_did_before_they_leave(start):  # noqa: F811 - the fixture
    started = start("--processes", "2").ready(workers=2)
    results = [task.enqueue(f"{task.name}-{n}") for n in range(20) for task in (mark, note_once)]
    ended(*results)
    assert started.stop() == 0

    counted = {figure.task: figure.value for figure in Figure.objects.filter(name="attempts")}

    assert counted == {mark.module_path: 20, note_once.module_path: 20}
    assert judged(written(families(measured(None)))) == []


@pytest.mark.skipif(
    connection.vendor != "postgresql" or PROGRAM is None, reason="PgBouncer is of PostgreSQL"
)
def test_the_doctor_finds_a_pooler_in_between(pooler):  # noqa: F811 - the fixture
    answer = in_shell("doctor", "--json", "--backend", "default", default=pooler)

    wrong = [one for one in answer.json["findings"] if one["name"] == "pooler"]
    assert len(wrong) == 1
    assert "took LISTEN and forgot it" in wrong[0]["says"]
    assert "WAKEUP" in wrong[0]["remedy"]


@pytest.mark.parametrize("words", [("jobs",), ("workers",), ("doctor", "--backend", "default")])
def test_what_is_watched_is_shown_again_until_interrupted(words):
    store()
    line, around = command(*words, "--watch", "0.2")
    ours, theirs = pty.openpty()
    around["env"].pop("NO_COLOR", None)
    process = subprocess.Popen(line, **around, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)

    shown = read_until(ours, lambda text: text.count("\x1b[2J") >= 3)
    process.send_signal(signal.SIGINT)
    read_until(ours, lambda text: False)

    assert process.wait(30) == 0
    assert shown.count("\x1b[H\x1b[2J") >= 3
    assert "Traceback" not in shown


def read_until(terminal: int, is_enough: Any, seconds: float = 60.0) -> str:
    shown = ""
    until_then = time.monotonic() + seconds
    with suppress(OSError):
        while time.monotonic() < until_then and not is_enough(shown):
            if select.select([terminal], [], [], 0.5)[0]:
                chunk = os.read(terminal, 4096)
                if not chunk:
                    break
                shown += chunk.decode(errors="replace")
    return shown


def test_who_watches_for_a_program_gets_a_document_in_each_line():
    import json

    line, around = command("status", "--watch", "0.1", "--json")
    process = subprocess.Popen(line, **around, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None

    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    process.stdout.read()

    assert process.wait(30) == 0
    assert all("backends" in one for one in documents)
    assert documents[0]["now"] < documents[2]["now"]
