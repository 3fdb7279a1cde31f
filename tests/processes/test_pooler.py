"""Behind PgBouncer in transaction mode: detected, said once, and nothing is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from django_once.models import Job
from tests.app.models import Note
from tests.processes.tasks import hold, mark, mark_at_most_once, mark_later, note_once
from tests.processes.workers import ended, send, until
from tools.servers.account import account_for

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
PORT = 6543

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="PgBouncer is of PostgreSQL"),
    pytest.mark.skipif(PROGRAM is None, reason="no pgbouncer here: apt-get install pgbouncer"),
]


@pytest.fixture
def pooler(transactional_db: None) -> Iterator[dict[str, Any]]:
    """Return the settings of this test's database as seen through a pooler of its own."""
    account = account_for(["postgres"])
    assert account is not None
    place = Path(tempfile.mkdtemp(prefix="once-pooler-", dir="/tmp"))
    behind = connection.settings_dict
    server = {"host": behind["HOST"], "port": behind["PORT"], "user": behind["USER"],
              "password": behind["PASSWORD"], "dbname": behind["NAME"]}  # fmt: skip
    address = " ".join(f"{key}={value}" for key, value in server.items() if value)
    (place / "pgbouncer.ini").write_text(
        f"[databases]\npooled = {address}\n[pgbouncer]\npool_mode = transaction\n"
        f"listen_addr =\nlisten_port = {PORT}\nunix_socket_dir = {place}\nauth_type = any\n"
        "default_pool_size = 4\nmax_client_conn = 200\nignore_startup_parameters = options\n"
    )
    for path in (place, place / "pgbouncer.ini"):
        account.give(path)
    process = subprocess.Popen(
        account.prefixed(sys.executable, [str(PROGRAM), str(place / "pgbouncer.ini")]),
        cwd=place,
        stdout=(place / "log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    settings = {"HOST": str(place), "PORT": str(PORT), "NAME": "pooled", "USER": "postgres"}

    def answers() -> bool:
        try:
            psycopg.connect(f"host={place} port={PORT} dbname=pooled user=postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        until(answers, 15, "the pooler")
        yield settings
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(place, ignore_errors=True)


def test_jobs_run_through_a_pooler_which_is_said_once(pooler, start, ledger, gate):
    command = start(
        "--processes", "2", databases={"default": pooler}, options={"LEASE": "2s"}
    ).ready(workers=2)
    before = command.children

    results = [
        task.enqueue(f"{task.name}-{n}")
        for n in range(40)
        for task in (mark, mark_later, mark_at_most_once, note_once)
    ]
    rows = ended(*results)

    assert {(row.status, row.attempt) for row in rows} == {(Job.SUCCESSFUL, 1)}
    assert sorted(ledger.tags()) == sorted(
        f"{name}-{n}" for n in range(40) for name in ("mark", "mark_later", "mark_at_most_once")
    )
    assert set(Counter(Note.objects.values_list("text", flat=True)).values()) == {1}
    said = [line for line in command.text.splitlines() if "swallows LISTEN" in line]
    assert len(said) == 1
    assert "wakeup: polling every 0.2 s" in said[0]

    # Renewals go through it too: a body may run longer than the lease, and a death is seen.
    held = hold.enqueue("held", str(gate))
    until(lambda: ledger.lines("began", "held"), what="a body")
    victim = ledger.lines("began", "held")[0].pid
    send(signal.SIGKILL, victim)
    until(lambda: ledger.count("began", "held") == 2, what="the second start")
    gate.touch()

    assert ended(held)[0].status == Job.SUCCESSFUL
    assert set(before) - {victim} < set(command.children)
    assert command.stop() == 0
