"""Workers are told to stop: nothing is lost, nothing happens twice, nobody pays for a deploy."""

from __future__ import annotations

import signal
import socket

import pytest

from django_once.models import Job
from django_once.models.worker import Worker
from tests.processes.tasks import chain, hold, hold_later, mark
from tests.processes.workers import ended, is_alive, job, on_one_database, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]

# More than two processes end before the signal reaches them.
JOBS = 2000


def test_told_to_stop_under_load_it_loses_and_doubles_nothing(start, ledger):
    command = start("--processes", "2", "--concurrency", "4").ready(workers=2)
    mark.enqueue_many([((f"{n}",), {}) for n in range(JOBS)])
    until(lambda: ledger.count("ran") > 50, what="some work")

    assert command.stop() == 0
    done = ledger.tags()
    rows = {row.pk: row for row in Job.objects.all()}

    assert len(done) == len(set(done))
    assert {row.status for row in rows.values()} <= {Job.READY, Job.SUCCESSFUL}
    assert sum(row.status == Job.SUCCESSFUL for row in rows.values()) == len(done)
    assert {row.attempt for row in rows.values() if row.status == Job.READY} <= {0}
    assert {row.history for row in rows.values()} == {"[]"}

    assert start("--batch").wait() == 0
    assert sorted(ledger.tags(), key=int) == [f"{n}" for n in range(JOBS)]


@on_one_database
def test_a_worker_that_is_being_forked_hears_of_the_end_too(start, monkeypatch):
    monkeypatch.setenv("ONCE_CRASH_POINT", "worker.forked:end")

    command = start()

    assert command.wait(20) == 0
    assert "has stopped after 0 jobs." in command.text


@pytest.mark.slow
@pytest.mark.parametrize(("task", "number"), [(hold, signal.SIGTERM), (hold_later, signal.SIGINT)])
def test_the_first_signal_lets_what_runs_end_and_gives_back_the_rest(
    start, ledger, gate, task, number
):
    command = start("--concurrency", "1").ready()
    running = task.enqueue("running", str(gate))
    until(lambda: ledger.count("began"), what="a body")
    waiting = mark.enqueue("waiting")

    command.send(number)
    until(lambda: "is stopping: 1 body has 25 s to end" in command.text)
    assert not command.has_ended()
    gate.touch()

    assert command.wait() == 0
    assert command.last_line.endswith(" has stopped after 1 job.")
    assert (job(running).status, job(running).attempt) == (Job.SUCCESSFUL, 1)
    assert (job(waiting).status, job(waiting).attempt) == (Job.READY, 0)
    assert {worker.stopped_at is not None for worker in Worker.objects.all()} == {True}


@pytest.mark.slow
def test_the_second_signal_gives_everything_back_and_charges_nobody(start, ledger, gate):
    command = start("--concurrency", "2").ready()
    results = [task.enqueue("a", str(gate)) for task in (hold, hold_later)]
    until(lambda: ledger.count("began") == 2, what="two bodies")

    command.send(signal.SIGTERM)
    until(lambda: "is stopping: 2 bodies have 25 s to end" in command.text, what="the first signal")
    assert not command.has_ended()

    assert command.stop() == 1
    assert {(job(one).status, job(one).deaths) for one in results} == {(Job.READY, 0)}
    assert command.last_line.endswith(
        " has stopped after 0 jobs. 2 bodies were cut short; their jobs begin again, "
        "but not under at_most_once."
    )
    assert "process.died" not in command.text


@pytest.mark.slow
@on_one_database
def test_a_drain_that_takes_too_long_ends_like_the_second_signal(start, ledger, gate):
    command = start("--drain-timeout", "0.5").ready()
    result = hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began"), what="a body")

    assert command.stop() == 1
    assert (job(result).status, job(result).deaths) == (Job.READY, 0)


@on_one_database
@pytest.mark.slow
def test_a_chain_survives_workers_that_come_and_go(start, ledger):
    result = chain.enqueue("a", 30)

    for _ in range(2):
        command = start().ready()
        command.stop()
    start("--batch").wait()

    assert ended(result)[0].status == Job.SUCCESSFUL
    assert sorted(ledger.tags()) == sorted(f"a-{n}" for n in range(31))


@pytest.mark.slow
@on_one_database
def test_sigquit_shows_the_stacks_of_all_processes_and_ends_none(start, ledger, gate):
    command = start().ready()
    result = hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began"), what="a body")
    before = command.children

    command.send(signal.SIGQUIT)

    until(lambda: "in wait_for" in command.text, what="the body's stack")
    _, *stacks = command.text.split("Stacks of the ")
    assert [said.partition(",")[0].split()[0] for said in stacks] == [
        "supervisor", "keeper", "worker",
    ]  # fmt: skip
    assert ["_await" in said or "_wait" in said for said in stacks[:2]] == [True, True]
    assert command.children == before
    gate.touch()
    assert ended(result)[0].attempt == 1
    assert command.stop() == 0


@on_one_database
@pytest.mark.slow
def test_processes_that_used_up_their_share_end_and_all_is_done(start, ledger):
    for n in range(40):
        mark.enqueue(f"{n}")

    command = start("--max-tasks", "40", "--processes", "2")

    assert command.wait() == 0
    assert sorted(ledger.tags(), key=int) == [f"{n}" for n in range(40)]


@pytest.mark.slow
@on_one_database
def test_a_worker_tells_systemd_when_it_is_ready_and_when_it_stops(start, tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(address)
        line.settimeout(20)
        command = start(environment={"NOTIFY_SOCKET": address})

        assert line.recv(100) == b"READY=1"
        assert len(command.workers) == 1
        command.send(signal.SIGTERM)
        assert line.recv(100) == b"STOPPING=1"

    assert command.wait() == 0


@on_one_database
@pytest.mark.slow
def test_a_closed_terminal_drains(start, ledger, gate):
    command = start().ready()
    children = command.children

    assert command.stop(signal.SIGHUP) == 0
    assert not any(map(is_alive, children))


@on_one_database
@pytest.mark.slow
def test_new_code_is_loaded_when_a_file_changes(start, ledger, tmp_path):
    module = tmp_path / "changing.py"
    module.write_text("")
    command = start(
        "--reload", environment={"ONCE_TEST_IMPORTS": "changing", "ONCE_TEST_PATH": str(tmp_path)}
    ).ready()
    (before,) = command.workers
    ended(mark.enqueue("before"))

    module.write_text("def half_written(")
    until(
        lambda: "changing.py has changed, but the code cannot be loaded" in command.text,
        what="the word for it",
    )
    ended(mark.enqueue("meanwhile"))
    assert "SyntaxError" in command.text

    module.write_text("# mended\n")
    until(lambda: command.workers not in ([], [before]), what="another process")
    ended(mark.enqueue("after"))

    assert {line.pid for line in ledger.lines("ran")[:2]} == {before}
    assert ledger.lines("ran", "after")[0].pid != before
    assert not is_alive(before)
    assert command.stop() == 0


@pytest.mark.slow
@on_one_database
def test_who_wants_to_stop_while_new_code_is_loaded_is_understood(start, ledger, tmp_path, gate):
    module = tmp_path / "changing.py"
    module.write_text("")
    command = start(
        "--reload", environment={"ONCE_TEST_IMPORTS": "changing", "ONCE_TEST_PATH": str(tmp_path)}
    ).ready()
    result = hold.enqueue("a", str(gate))
    until(lambda: ledger.count("began"), what="a body")

    module.write_text("# changed\n")
    until(lambda: "starts anew" in command.text, what="the change")
    command.send(signal.SIGINT)
    gate.touch()

    assert command.wait() == 0
    assert (job(result).status, job(result).attempt) == (Job.SUCCESSFUL, 1)
    assert command.last_line.endswith(" has stopped after 1 job.")
