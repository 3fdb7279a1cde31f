"""`once locks` and `once lock`: for people, and for schedulers that know only commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from django_once.errors import InvalidOption, LockLost
from django_once.locks import lock
from django_once.models import Lock
from django_once.models.lock import end_by_force
from django_once.sql.lines import close_idle, line
from django_once.testing import moved_clock
from tests.processes.workers import ROOT, names_of_databases, until

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.slow,
]


def once(*words):
    """Run the command in this process; return its exit status."""
    try:
        call_command("once", *words)
    except SystemExit as left:
        return left.code
    return 0


def began(*words, **more):
    """Start the command in a process of its own."""
    told = {"databases": names_of_databases(), "options": {}, "receivers": False}
    return subprocess.Popen(
        [sys.executable, "-m", "django", "once", "lock", *words], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
             "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
             "ONCE_TEST_PROCESSES": json.dumps(told)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip


def test_locks_are_listed_with_their_holders(capsys):
    with lock("export") as held:
        assert once("locks") == 0

    shown = capsys.readouterr().out
    assert "export" in shown
    assert held.holder in shown
    assert once("locks") == 0
    assert "No lock is held." in capsys.readouterr().out
    once("locks", "--all")
    assert "free" in capsys.readouterr().out


def test_programs_read_locks_as_json(capsys):
    with lock("export") as held:
        once("locks", "--json")

    (one,) = json.loads(capsys.readouterr().out)["locks"]
    assert (one["name"], one["state"], one["holder"], one["fence"]) == (
        "export", "held", held.holder, 1,
    )  # fmt: skip


def test_the_history_names_the_last_holders(capsys):
    with lock("export"):
        pass
    with lock("export"):
        pass
    lock("import", lease="1s").acquire()
    with moved_clock("1m"):
        once("locks", "--history", "--json")

    holdings = json.loads(capsys.readouterr().out)["holdings"]
    assert [(one["name"], one["fence"], one["end"]) for one in holdings] == [
        ("import", 1, "expired"), ("export", 2, "released"), ("export", 1, "released"),
    ]  # fmt: skip
    once("locks", "--history")
    assert "released" in capsys.readouterr().out


def test_a_person_takes_a_lock_away_with_a_reason(capsys):
    held = lock("export", lease="1h").acquire()

    assert once("locks", "release", "export", "--reason", "it hangs", "--yes") == 0

    assert held.holder in capsys.readouterr().out
    assert Lock.objects.get().reason == "it hangs"
    with pytest.raises(LockLost):
        held.release()
    assert once("locks", "release", "export", "--reason", "again", "--yes") == 1
    assert "Nobody holds" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("release",), ("release", "export"), ("release", "", "--reason", "x")]
)
def test_a_release_without_name_or_reason_is_refused(words):
    with pytest.raises(CommandError, match="which lock and why"):
        call_command("once", "locks", *words)


def test_a_name_that_cannot_be_meant_is_refused():
    with pytest.raises((CommandError, InvalidOption), match="1 to 255"):
        call_command("once", "locks", "release", "n" * 256, "--reason", "x")


def test_a_command_runs_under_the_lock_with_its_fence():
    with lock("digest"):
        pass
    wrapped = began("digest", "--lease", "5s", "--", "sh", "-c", "echo $FENCE $ONCE_LOCK; exit 7")

    out, error = wrapped.communicate(timeout=60)

    assert (out.strip(), wrapped.returncode) == ("2 digest", 7), error
    assert Lock.objects.get().released_at is not None


def test_a_command_whose_lock_is_held_does_not_run(tmp_path):
    with lock("digest") as held:
        wrapped = began("digest", "--", "touch", str(tmp_path / "ran"))
        _, error = wrapped.communicate(timeout=60)
        skipped = began("digest", "--if-held", "skip", "--", "touch", str(tmp_path / "ran"))
        skipped.communicate(timeout=60)

    assert (wrapped.returncode, skipped.returncode) == (75, 0)
    assert held.holder in error
    assert not (tmp_path / "ran").exists()


def test_signals_go_on_to_the_command_and_the_lock_is_given_back(tmp_path):
    ready = tmp_path / "ready"
    wrapped = began(
        "digest", "--", "sh", "-c", f"trap 'exit 9' TERM; touch {ready}; sleep 60 & wait"
    )
    until(ready.exists, 60, "the command")

    wrapped.send_signal(signal.SIGTERM)
    _, error = wrapped.communicate(timeout=30)

    assert wrapped.returncode == 9, error
    assert Lock.objects.get().released_at is not None


def test_a_command_that_lost_its_lock_is_ended(tmp_path):
    ready = tmp_path / "ready"
    script = f"trap '' TERM; touch {ready}; sleep 60 & wait; sleep 60"
    wrapped = began("digest", "--lease", "1s", "--kill-after", "0.5s", "--", "sh", "-c", script)
    until(ready.exists, 60, "the command")

    with line("default") as own:
        assert end_by_force(own, "digest", "eve", "for a test")
    close_idle("default", 0.0)
    _, error = wrapped.communicate(timeout=30)

    assert wrapped.returncode == 76, error
    assert "was lost" in error


def test_a_command_dies_with_the_process_that_renews_its_lock(tmp_path):
    ready = tmp_path / "ready"
    wrapped = began("digest", "--", "sh", "-c", f"echo $$ > {ready}; exec sleep 60")
    until(lambda: ready.exists() and ready.read_text().strip(), 60, "the command")
    pid = int(ready.read_text())

    wrapped.kill()
    wrapped.communicate(timeout=30)

    until(lambda: not Path(f"/proc/{pid}").exists(), 10, "the end of the command")


@pytest.mark.parametrize(
    ("words", "status"),
    [(("digest",), 2), (("digest", "--", "/no/such/command"), 127), (("digest", "--", "/"), 126)],
)
def test_what_cannot_be_run_is_told_as_a_shell_does(words, status):
    wrapped = began(*words)

    _, error = wrapped.communicate(timeout=60)

    assert wrapped.returncode == status, error
