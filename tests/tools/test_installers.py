"""uv is used where it is on PATH, unless pip has been told where packages come from."""

from __future__ import annotations

import os
import sys

import pytest

from tests.tools.conftest import make_wheel, write_lock
from tools.environments import ready_environment
from tools.installers import uv_for

FAKE_UV = """#!/bin/sh
echo "$@" >> "$FAKE_UV_LOG"
if [ "$1" = --version ]; then echo uv 0.0; exit 0; fi
exit %d
"""


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """Return a function that puts a uv on PATH which ends in a given way."""

    def put(code):
        directory = tmp_path / "bin"
        directory.mkdir(exist_ok=True)
        (directory / "uv").write_text(FAKE_UV % code)
        (directory / "uv").chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_UV_LOG", str(tmp_path / "uv.log"))
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            if name != "PIP_CONFIG_FILE":
                monkeypatch.delenv(name)
        return tmp_path / "uv.log"

    return put


def test_uv_on_path_is_found(uv):
    uv(0)

    assert uv_for(sys.executable).endswith("/bin/uv")


def test_uv_that_does_not_run_is_not_used(uv, tmp_path):
    uv(0)
    (tmp_path / "bin" / "uv").write_text("#!/bin/sh\nexit 127\n")

    assert uv_for(sys.executable) == ""


def test_uv_is_not_used_where_pip_knows_another_place(uv, monkeypatch, tmp_path):
    uv(0)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    assert uv_for(sys.executable) == ""


def test_uv_gets_the_same_lock_with_the_same_strictness(uv, requirements, this_python):
    log = uv(0)
    write_lock(requirements, "tiny", onething=("1.0", "0" * 64))

    ready_environment("tiny", this_python)

    asked = log.read_text().splitlines()[-1]
    assert asked.startswith("pip install --python")
    assert "--require-hashes --no-build" in asked
    assert asked.endswith("tiny.lock")


def test_pip_takes_over_when_uv_fails(uv, index, requirements, this_python, monkeypatch):
    log = uv(1)
    sha = make_wheel(index, "onething", "1.0")
    write_lock(requirements, "tiny", onething=("1.0", sha))
    # As a user's pip.conf would: only pip's own configuration says where the wheels are.
    monkeypatch.setattr("tools.environments.uv_for", lambda python: str(log.parent / "bin" / "uv"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    made = ready_environment("tiny", this_python)

    assert "pip install" in log.read_text()
    assert made.version_of("onething") == "1.0"
