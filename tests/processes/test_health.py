"""A probe is answered by what the workers do, and not only by there being a process."""

from __future__ import annotations

import os
import signal
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.processes.tasks import hold, mark
from tests.processes.workers import ended, on_one_database, send, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return line.getsockname()[1]


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


@pytest.mark.slow
@on_one_database
def test_a_worker_that_makes_progress_is_ready_and_one_that_does_not_is_only_alive(start, ledger):
    port = free_port()
    command = start("--health-port", f"{port}", options={"LEASE": "2s"}).ready()
    until(lambda: asked(port, "/ready") == (200, "ok\n"), what="readiness")
    ended(mark.enqueue("a"))

    # A keeper that is stopped renews nothing: the workers may start nothing either.
    keeper = command.keeper
    send(signal.SIGSTOP, keeper)
    status, said = until(
        lambda: (found := asked(port, "/ready"))[0] == 503 and found, what="unreadiness"
    )
    assert asked(port, "/live") == (200, "ok\n")
    assert asked(port, "/health") == (404, "there are /live and /ready\n")
    assert (status, said) == (503, "the lease was not renewed lately\n")

    send(signal.SIGCONT, keeper)
    until(lambda: asked(port, "/ready")[0] == 200, what="readiness again")
    assert command.stop() == 0


@pytest.mark.slow
@on_one_database
def test_workers_that_drain_are_alive_and_not_ready(start, ledger, gate):
    port = free_port()
    command = start("--health-port", f"{port}").ready()
    hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began"), what="a body")

    command.send(signal.SIGTERM)
    until(lambda: asked(port, "/ready") == (503, "the workers are stopping\n"), what="unreadiness")

    assert asked(port, "/live") == (200, "ok\n")
    gate.touch()
    assert command.wait() == 0


@pytest.mark.slow
@on_one_database
def test_a_port_in_use_is_refused_in_one_sentence(start):
    with socket.create_server(("", 0)) as line:
        port = line.getsockname()[1]
        command = start("--health-port", f"{port}")

        assert command.wait() == 2

    said = [line for line in command.text.splitlines() if "health-port" in line]
    assert said == [
        f"CommandError: --health-port {port} cannot be used: {os.strerror(98)}. Name a free port."
    ]
