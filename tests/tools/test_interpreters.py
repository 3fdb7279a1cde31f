"""Pythons are found by running them, and each one that cannot be used has a reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import interpreters
from tools.errors import Refusal
from tools.interpreters import Discovery, Interpreter, candidate_paths, discover, probe

SHIM = "#!/bin/sh\necho 'this version is not selected' >&2\nexit 127\n"
GOOD = Interpreter("/good", (3, 13, 1))


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_this_python_answers_for_itself():
    found = probe(sys.executable)

    assert isinstance(found, Interpreter)
    assert found.version == sys.version_info[:3]
    assert not found.missing


def test_a_path_of_shims_alone_yields_no_python(tmp_path, monkeypatch):
    script(tmp_path / "shims" / "python3", SHIM)
    script(tmp_path / "shims" / "python3.13", SHIM)
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setattr(interpreters, "PLACES", ())
    monkeypatch.setattr(interpreters.sys, "executable", "")
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR", raising=False)

    found = discover()

    assert not found.interpreters
    assert len(found.silent) == 2
    assert all("not selected" in reason for _, reason in found.silent)
    with pytest.raises(Refusal, match=r"No Python from 3\.11 to 3\.14 that works was found"):
        found.newest()


def test_a_program_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(interpreters, "SECONDS_TO_ANSWER", 0.2)

    assert "no answer within" in probe(script(tmp_path / "python3", "#!/bin/sh\nexec sleep 30\n"))


def test_a_program_that_talks_of_something_else_is_no_python(tmp_path):
    assert probe(script(tmp_path / "python3", "#!/bin/sh\necho hello\n")) == (
        "answers with something else"
    )


@pytest.mark.parametrize(
    ("interpreter", "reason"),
    [
        (Interpreter("/x", (3, 10, 1)), "older than 3.11"),
        (Interpreter("/x", (3, 15, 0)), "newer than 3.14"),
        (Interpreter("/x", (3, 14, 0), is_final=False), "a pre-release"),
        (Interpreter("/x", (3, 12, 1), missing=("ensurepip",)), "apt-get install python3.12-venv"),
    ],
)
def test_each_that_cannot_be_used_says_why(interpreter, reason):
    assert reason in interpreter.why_not
    with pytest.raises(Refusal, match="/x"):
        Discovery((interpreter,)).newest()


def test_the_newest_that_works_is_chosen():
    found = Discovery((Interpreter("/old", (3, 11, 9)), GOOD, Interpreter("/new", (3, 15, 0))))

    assert found.newest() == GOOD
    assert [one.path for one in found.in_series((3, 11), (3, 11))] == ["/old"]


@pytest.mark.parametrize("named", ["/not/there", "3.99"])
def test_a_named_python_that_does_not_work_is_refused(named):
    with pytest.raises(Refusal, match=f"--python {named}"):
        discover(named)


def test_a_python_can_be_named_by_its_version():
    series = f"{sys.version_info[0]}.{sys.version_info[1]}"

    assert {one.series_text for one in discover(series).usable} == {series}


def test_only_names_of_pythons_are_candidates(tmp_path):
    for name in ("python3", "python3.12", "python3-config", "python3.12-gdb"):
        script(tmp_path / name, SHIM + name)

    found = [path for path in candidate_paths(str(tmp_path)) if str(tmp_path) in path]

    assert sorted(Path(path).name for path in found) == ["python3", "python3.12"]
