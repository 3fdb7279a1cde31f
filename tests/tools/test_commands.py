"""dev.py answers everybody with sentences: an old Python, a wrong word, an interrupt."""

from __future__ import annotations

import ast
import glob
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import commands
from tools.checkout import ROOT
from tools.children import environment
from tools.environments import environment_for
from tools.errors import Refusal
from tools.interpreters import Interpreter
from tools.servers.kinds import KINDS
from tools.servers.ledger import began
from tools.targets import NAMES
from tools.verbs import programs
from tools.verbs.test import read_arguments

SOURCES = sorted([ROOT / "dev.py", *(ROOT / "tools").rglob("*.py")])
OLD = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/[23].*/bin/python")))


def dev(*arguments, python=sys.executable, **more):
    return subprocess.run(
        [python, "dev.py", *arguments],
        cwd=ROOT,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_can_be_read_by_python_38_and_needs_no_package(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))

    imported = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    if path.name != "pytest_target.py":
        assert imported <= {*sys.stdlib_module_names, "tools"}
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("python", OLD or [sys.executable])
def test_each_python_here_gets_the_help_or_a_sentence(python):
    said = dev("help", python=python)

    assert "Traceback" not in said.stderr
    if said.returncode:
        assert said.returncode == 2
        assert "dev.py needs Python 3.8 or newer" in said.stderr
    else:
        assert "python3 dev.py COMMAND" in said.stdout


def test_an_unknown_command_is_told_the_nearest():
    said = dev("tets")

    assert said.returncode == 2
    assert said.stderr.strip() == "'tets' is not a command. Did you mean 'test'?"


def test_the_help_names_every_command():
    said = dev("help").stdout

    for name in (
        "demo",
        "test",
        "lint",
        "docs",
        "bench",
        "doctor",
        "shell",
        "clean",
        "chaos",
        "mutants",
    ):
        assert f"  {name} " in said


@pytest.mark.parametrize("option", ["--only", "--require"])
def test_an_unknown_target_is_told_the_nearest(option):
    said = dev("test", option, "postgres")

    assert said.returncode == 2
    assert "no target 'postgres'. Did you mean 'postgresql'?" in said.stderr


def test_what_is_required_cannot_be_left_out():
    with pytest.raises(Refusal, match="--require names redis, which --only leaves out"):
        read_arguments(["--only", "sqlite", "--require", "redis,sqlite"])


def test_what_follows_two_dashes_goes_to_pytest():
    wish, arguments = read_arguments(["--quick", "--require", "all", "--", "-k", "lock", "--", "x"])

    assert wish.is_quick
    assert wish.require == NAMES
    assert arguments == ["-k", "lock", "--", "x"]


def test_a_program_that_is_not_there_yet_is_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(programs, "ROOT", tmp_path)

    assert commands.run(["bench"]) == 1
    assert capsys.readouterr().err == "The program 'bench' is not in this checkout yet.\n"


def test_the_options_of_dev_are_kept_from_the_program():
    assert programs.own_options(["--db", "x", "--python", "3.12", "--offline", "-n", "2"]) == (
        "3.12",
        True,
        ["--db", "x", "-n", "2"],
    )


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Refusal("Do this."), 1, "Do this."),
        (OSError(28, "No space", "/x"), 1, "The disk is full"),
        (KeyboardInterrupt(), 130, "Interrupted: 'dev.py bench' did not finish."),
    ],
)
def test_whatever_goes_wrong_ends_in_a_sentence(monkeypatch, capsys, error, code, words):
    def fail(name, arguments):
        raise error

    monkeypatch.setattr(programs, "run", fail)

    assert commands.run(["bench"]) == code
    assert words in capsys.readouterr().err


def test_no_python_at_all_is_a_sentence(tmp_path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3").chmod(0o755)

    said = dev("test", "--python", str(tmp_path / "python3"))

    assert said.returncode == 1
    assert "exits with 127. Name a Python from 3.11 to 3.14." in said.stderr


def lend_environment():
    """Let the environment of this test count as that of its own state directory.

    What is lent are links: whatever becomes of them, the environment stays whole.
    Returns the path of its interpreter.
    """
    python = Interpreter(os.path.realpath(sys.executable), sys.version_info[:3])
    lent = environment_for("test", python)
    lent.directory.mkdir(parents=True)
    for name in ("bin", "lib", "pyvenv.cfg"):
        (lent.directory / name).symlink_to(Path(sys.prefix) / name)
    (lent.directory / "stamp.json").write_text(json.dumps(lent.stamp))
    return python.path


def test_an_interrupt_stops_the_servers_and_says_so(state):
    if not KINDS["redis"].installed():
        pytest.skip("no server on this machine that is quick to start")
    python = lend_environment()
    options = ["--only", "redis", "--offline", "--python", python, "--", "-p", "tests.tools.stuck"]
    variables = {"ONCE_DEV_IGNORE_RUNNING": "1"}
    running = subprocess.Popen(
        [sys.executable, "dev.py", "test", *options],
        cwd=ROOT,
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    since = time.monotonic()
    for line in running.stdout:
        if "redis" in line and "Python" in line:
            break
        assert time.monotonic() - since < 60
    pages = list((state / "ledger").glob("*.json"))

    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=60)

    assert running.returncode == 130
    assert "Interrupted: the tests did not finish. Servers stopped: 1." in complaint
    assert "Traceback" not in complaint
    assert len(pages) == 3
    assert not any(began(int(page.stem)) for page in pages)
    assert not list((state / "ledger").iterdir())
