"""Servers of our own start from what is on this machine, answer, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.checkout import ROOT
from tools.children import ask, environment
from tools.errors import Refusal
from tools.servers import packages
from tools.servers.account import Account, account_for
from tools.servers.harness import Harness, reachable
from tools.servers.kinds import KINDS
from tools.servers.ledger import Ledger, began, remove_place
from tools.servers.search import Search
from tools.servers.server import Server

US = Account("", os.getuid(), os.getgid())
SLEEP = ["/bin/sleep", "60"]


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "redis"])
def test_a_server_starts_from_local_binaries_and_is_gone_afterwards(name, this_python, monkeypatch):
    kind = KINDS[name]
    if not kind.installed():
        pytest.skip(f"no binaries of {name} on this machine")
    monkeypatch.setenv("ONCE_DEV_IGNORE_RUNNING", "1")
    for variable in kind.variables:
        monkeypatch.delenv(variable, raising=False)

    with Harness() as harness:
        search = Search(sys.executable, this_python, harness)
        server = search.find(kind)
        assert isinstance(server, Server), server
        assert server.is_ours
        place, pid = harness.running[0].place, harness.running[0].process.pid
        if name != "redis":
            only_ours_are_dropped(search, server)

    assert not began(pid)
    assert not place.exists()
    assert not list(harness.ledger.directory.iterdir())


def only_ours_are_dropped(search, server):
    """Check that a database with our prefix can be dropped, and none without it."""
    argv = [sys.executable, "-m", "tools.servers.ask", "drop", "mysql"]
    refused = json.loads(ask(argv, said=server.address.url).output)
    assert "is not the name of a database of ours" in refused["complaint"]
    assert search.drop(server, "test_once_none") == []


def test_what_a_killed_run_has_left_is_ended_by_the_next(tmp_path, state):
    code = (
        "import os, signal; from tools.servers.harness import Harness; "
        "from tools.servers.account import Account; "
        "us = Account('', os.getuid(), os.getgid()); harness = Harness(); "
        "place = harness.place_for('t', us); "
        f"one = harness.start({SLEEP!r}, us, place, lambda: True); "
        "print(one.process.pid, place, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        check=False,
    )
    pid, place = killed.stdout.decode().split()
    assert killed.returncode == -signal.SIGKILL
    assert began(int(pid))

    ended = Ledger(state / "ledger").reap()

    assert ended == 1
    assert not began(int(pid))
    assert not Path(place).exists()


def test_what_a_living_run_uses_is_left_alone(state):
    with Harness() as harness:
        one = harness.start(SLEEP, US, harness.place_for("t", US), lambda: True)

        assert Ledger(state / "ledger").reap() == 0
        assert one.process.poll() is None


def test_a_pid_that_came_back_as_somebody_else_is_not_killed(state):
    stranger = subprocess.Popen(SLEEP)
    page = Ledger(state / "ledger").record(stranger.pid, None)
    facts = json.loads(page.read_text())
    facts.update(owner=0, owner_began="", began="before that")
    page.write_text(json.dumps(facts))

    assert Ledger(state / "ledger").reap() == 0

    assert stranger.poll() is None
    assert not page.exists()
    stranger.kill()
    stranger.wait()


def test_only_temporary_directories_of_ours_are_removed(tmp_path):
    (tmp_path / "once-precious").mkdir()

    remove_place(str(tmp_path / "once-precious"))

    assert (tmp_path / "once-precious").exists()


def test_a_server_that_does_not_start_says_its_last_words():
    argv = [sys.executable, "-c", "import sys; sys.exit('no such option')"]
    with Harness() as harness:
        place = harness.place_for("t", US)
        with pytest.raises(Refusal, match="did not start: no such option"):
            harness.start(argv, US, place, lambda: False)

        assert not harness.running


def test_the_socket_of_a_server_has_a_short_path(monkeypatch, tmp_path):
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with Harness() as harness:
        place = harness.place_for("pg", US)

        assert len(str(place / ".s.PGSQL.5432")) < 100

    assert not place.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs servers as somebody else")
def test_root_runs_servers_as_an_account_without_rights(tmp_path):
    account = account_for(["no-such-account"])

    assert account.name == "nobody"
    with Harness() as harness:
        place = harness.place_for("t", account)
        code = "import os; print(os.getuid(), os.getgid(), os.getgroups())"
        said = harness.run(["/usr/bin/env", sys.executable, "-c", code], US, place)
        assert said.split()[0] == "0"
        said = harness.run(["/usr/bin/id", "-u"], account, place)
        assert int(said) == account.uid


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs servers as somebody else")
def test_binaries_under_a_private_directory_are_copied_with_what_stands_beside_them(tmp_path):
    tmp_path.chmod(0o700)
    tree = tmp_path / "package" / "install"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "server").write_text("binary")
    (tmp_path / "package.libs").mkdir()
    account = account_for([])
    with Harness() as harness:
        place = harness.place_for("t", account)

        copy = reachable(tree, account, place, [tmp_path / "package.libs"])

        assert copy != tree
        assert (copy.parent.parent / "package.libs").is_dir()
        said = harness.run(["/bin/cat", str(copy / "bin" / "server")], account, place)
        assert said == "binary"


def test_a_simulated_installation_names_the_packages():
    simulated = (
        "NOTE: This is only a simulation!\n"
        "Inst libaio1 (0.3.113-4 Debian:12/stable [amd64])\n"
        "Inst mariadb-server-core (1:10.11 Debian:12/stable [amd64])\n"
        "Conf libaio1 (0.3.113-4 Debian:12/stable [amd64])\n"
    )

    assert packages.packages_to_install(simulated) == ["libaio1", "mariadb-server-core"]


def test_without_the_tools_of_the_distribution_nothing_is_unpacked(monkeypatch):
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)

    with pytest.raises(Refusal, match="no apt-get here"):
        packages.unpacked("mariadb-server-core", offline=False)


def test_stopping_does_not_wait_for_ever(monkeypatch):
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); "
        "print('on', flush=True); time.sleep(60)"
    )
    with Harness() as harness:
        place = harness.place_for("t", US)
        log = place / "server.log"
        one = harness.start(
            [sys.executable, "-c", code], US, place, lambda: b"on" in log.read_bytes()
        )
        monkeypatch.setattr("tools.servers.harness.SECONDS_TO_STOP", 0.2)
        since = time.monotonic()

        harness.stop(one)

        assert one.process.returncode == -signal.SIGKILL
        assert time.monotonic() - since < 5
