"""`manage.py once` as a process of its own: exit statuses, pipes, terminals, broken databases."""

from __future__ import annotations

import re
import subprocess

import pytest
from django.db import connection

from django_once.models.job.settle import settle
from tests.jobs import a_worker, claim, failure, store, store_many
from tests.management.shell import command, in_shell, on_terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def failed(count: int) -> None:
    store_many(count)
    settle("default", [failure(one) for one in claim(a_worker(), count)])


def test_the_exit_status_says_what_was_found():
    assert in_shell("jobs").code == 0
    store()
    assert in_shell("status").code == 1
    assert in_shell("jobs", "--limit", "none").code == 2
    assert in_shell("jobs", "--backend", "nobody").code == 2
    assert in_shell("nonsense").code == 2
    assert in_shell().code == 2


def test_help_names_every_verb():
    text = in_shell("--help").out

    for verb in ("worker", "status", "jobs", "show", "workers", "retry", "cancel", "prune"):
        assert re.search(rf"^    {verb} +\S", text, re.MULTILINE), verb


@pytest.mark.parametrize("verb", ["status", "jobs", "workers", "prune", "show ffff"])
def test_an_unmigrated_database_is_told_with_what_to_run(verb, tmp_path):
    if connection.vendor != "sqlite":
        pytest.skip("One kind of database is enough for what asks no statement of it.")

    answer = in_shell(*verb.split(), default={"NAME": str(tmp_path / "empty.sqlite3")})

    assert (answer.code, answer.out) == (2, "")
    assert "Database 'default' lacks" in answer.err
    assert "Run: python manage.py migrate" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("verb", ["status", "jobs", "workers", "prune", "show ffff"])
def test_an_unreachable_database_is_told_without_a_traceback(verb):
    away = {
        "sqlite": {"NAME": "/nowhere/at/all.sqlite3"},
        "postgresql": {"HOST": "127.0.0.1", "PORT": "1"},
        "mysql": {"HOST": "127.0.0.1", "PORT": "1"},
    }[connection.vendor]

    answer = in_shell(*verb.split(), default=away)

    assert (answer.code, answer.out) == (3, "")
    assert "Database 'default' cannot be reached: " in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_who_has_seen_enough_may_close_the_pipe():
    store_many(300)
    line, around = command("jobs", "--limit", "300", "--json")
    process = subprocess.Popen(
        line, **around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None
    process.stdout.read(1)
    process.stdout.close()

    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, b"")


def test_colours_and_progress_are_for_terminals_only():
    failed(3)

    piped, shown = in_shell("jobs", "--state", "failed"), on_terminal("jobs", "--state", "failed")
    assert "\x1b[" not in piped.out
    assert "\x1b[" in shown.out
    assert "\x1b[" in in_shell("jobs", "--force-color").out
    assert "\x1b[" not in on_terminal("jobs", "--no-color").out
    assert "\x1b[" not in on_terminal("jobs", "--json").out

    shown = on_terminal("retry", "--state", "failed", typed="y\n")
    assert "Retry 3 jobs? [y/N] " in shown.out
    assert "3 of 3" in shown.out
    assert "Retried 3 jobs." in shown.out
    assert shown.code == 0


def test_a_bar_is_drawn_on_a_terminal_and_not_into_a_file():
    failed(3)

    piped = in_shell("prune", "--older-than", "0", "--batch-size", "2", "--yes")
    assert (piped.err, "█" in piped.out) == ("", False)
    failed(3)
    shown = on_terminal("prune", "--older-than", "0", "--batch-size", "2", "--yes")
    assert "Pruning" in shown.out
    assert "█" in shown.out


def test_a_table_is_readable_where_output_is_not_utf8():
    store(task="shop.tä")
    line, around = command("jobs")
    around["env"] |= {"PYTHONIOENCODING": "ascii"}

    done = subprocess.run(line, **around, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "shop.t\\xe4" in done.stdout


def test_watching_ends_with_ctrl_c():
    a_worker(queues='["*"]')
    line, around = command("status", "--watch", "0.2")
    process = subprocess.Popen(line, **around, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert b"default (database" in process.stdout.readline()

    process.send_signal(2)

    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, b"")
