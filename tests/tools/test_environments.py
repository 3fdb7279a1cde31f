"""Environments are made from locks, once, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tests.tools.conftest import make_wheel, write_lock
from tools.checkout import ROOT
from tools.children import ask, environment
from tools.environments import environment_for, ready_environment
from tools.errors import Refusal
from tools.installers import command, install
from tools.interpreters import Interpreter


@pytest.fixture
def tiny(index, requirements):
    """Pin one little package that can be fetched."""
    write_lock(requirements, "tiny", onething=("1.0", make_wheel(index, "onething", "1.0")))
    return requirements


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return an environment that was made from a lock with one little package."""
    place = tmp_path_factory.mktemp("made")
    write_lock(place, "tiny", onething=("1.0", make_wheel(place, "onething", "1.0")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tools.environments.REQUIREMENTS", place)
        patch.setenv("ONCE_DEV_STATE", str(place / "state"))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(place))
        python = Interpreter(sys.executable, sys.version_info[:3])
        yield ready_environment("tiny", python)


def test_an_environment_holds_what_the_lock_names_and_points_to_the_source(made):
    code = "import onething, sys; print(onething.VERSION, sys.path[-1])"

    assert ask([made.python, "-c", code]).output.split() == ["1.0", str(ROOT / "src")]
    assert made.version_of("onething") == "1.0"


def test_an_environment_that_is_ready_is_left_alone(made, monkeypatch):
    monkeypatch.setattr("tools.environments.REQUIREMENTS", made.lock_file.parent)
    monkeypatch.setenv("ONCE_DEV_STATE", str(made.directory.parent.parent))
    before = (made.directory / "stamp.json").stat().st_mtime_ns

    again = ready_environment("tiny", made.interpreter)

    assert again == made
    assert (made.directory / "stamp.json").stat().st_mtime_ns == before


def test_it_is_not_ready_for_another_lock_or_another_python(made, tmp_path, monkeypatch):
    monkeypatch.setattr("tools.environments.REQUIREMENTS", made.lock_file.parent)
    assert made.is_ready

    assert not replace(made, interpreter=Interpreter("/other", (3, 13, 99))).is_ready
    write_lock(tmp_path, "tiny", onething=("2.0", "0" * 64))
    monkeypatch.setattr("tools.environments.REQUIREMENTS", tmp_path)
    assert not made.is_ready


MAKE = """
import sys
from pathlib import Path
import tools.environments as environments
from tools.interpreters import Interpreter
environments.REQUIREMENTS = Path(sys.argv[1])
environments.uv_for = lambda python: sys.argv[2]
environments.ready_environment("tiny", Interpreter(sys.executable, sys.version_info[:3]))
"""


def test_one_that_was_killed_half_way_is_not_ready_and_is_made_anew(
    tiny, this_python, tmp_path, monkeypatch
):
    installer, said = tmp_path / "installer", tmp_path / "said"
    script = f"#!/bin/sh\necho begun >> {said}\nsleep 1\necho over >> {said}\n"
    installer.write_text(script)
    installer.chmod(0o755)
    monkeypatch.setattr("tools.environments.uv_for", lambda python: str(installer))
    wanted = environment_for("tiny", this_python)
    argv = [sys.executable, "-c", MAKE, str(tiny), str(installer)]
    maker = subprocess.Popen(argv, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    while not said.exists() and maker.poll() is None:
        time.sleep(0.01)
    maker.kill()
    maker.wait()

    assert wanted.directory.exists()
    assert not wanted.is_ready
    assert said.read_text().split() == ["begun"]
    # The installer outlives its maker, and nobody else may write beside it.
    assert ready_environment("tiny", this_python).is_ready
    assert said.read_text().split() == ["begun", "over", "begun", "over"]


@pytest.mark.parametrize("size", ["1m", "12m"])
def test_a_full_disk_is_told_as_such(tiny, tmp_path, monkeypatch, size):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size={size} tmpfs {disk}"
    if not ask(["unshare", "-rm", "sh", "-c", mount]).is_good:
        pytest.skip("This user may not mount a disk of its own.")
    monkeypatch.setenv("ONCE_DEV_STATE", str(disk))

    argv = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$0" "$@"']
    said = ask([*argv, sys.executable, "-c", MAKE, str(tiny), ""], cwd=ROOT, seconds=60).output

    assert "Refusal: The disk is full:" in said, said


def test_a_package_with_another_hash_is_refused(made, tiny, index):
    make_wheel(index, "another", "1.0")
    write_lock(tiny, "tiny", another=("1.0", "0" * 64))

    said = install(made.python, tiny / "tiny.lock", uv="", offline=False)

    assert "another" in said
    assert "not the one that was locked" in said


def test_a_package_that_the_index_lacks_is_named_with_its_lock(made, tiny):
    write_lock(tiny, "tiny", nothere=("9.9", "0" * 64))

    said = install(made.python, tiny / "tiny.lock", uv="", offline=False)

    assert "lacks a pinned package of tiny.lock" in said
    assert "nothere" in said


def test_an_index_that_gives_no_answer_is_told_as_such(made, tiny, monkeypatch):
    write_lock(tiny, "tiny", nothere=("9.9", "0" * 64))
    unreachable = {"NO_INDEX": "0", "INDEX_URL": "http://127.0.0.1:9/", "RETRIES": "1"}
    for name, value in unreachable.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)

    said = install(made.python, tiny / "tiny.lock", uv="", offline=False)

    assert "the package index gave no answer" in said


def test_offline_takes_what_is_here_and_says_what_to_do_otherwise(made, tiny):
    write_lock(tiny, "other", nothere=("9.9", "0" * 64))

    assert install(made.python, tiny / "tiny.lock", uv="", offline=True) == ""
    said = install(made.python, tiny / "other.lock", uv="", offline=True)
    assert said.startswith("--offline: the packages of other.lock are not all on this machine")


def test_a_lock_that_is_not_there_is_a_broken_checkout(requirements, this_python):
    with pytest.raises(Refusal, match="The checkout is not whole"):
        ready_environment("tiny", this_python)


def test_packages_are_only_taken_built_and_with_their_hashes(tmp_path):
    argv = command("python", tmp_path / "test.lock")

    assert "--require-hashes" in argv
    assert "--only-binary=:all:" in argv
