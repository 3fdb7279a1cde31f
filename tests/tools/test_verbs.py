"""The smaller commands: what they make, what they leave alone, and what they say is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools import rounds
from tools.checkout import ROOT, state_directory
from tools.children import environment
from tools.errors import Refusal
from tools.interpreters import Discovery, Interpreter
from tools.rounds import Wish, kinds_wanted
from tools.verbs import clean, docs, doctor, lint

PYTHON3 = """#!/bin/sh
case "$2" in
  lint) echo style; exit %d ;;
  test) echo "$@"; echo '12 passed, %d failed, 0 skipped'; exit %d ;;
esac
"""


def test_clean_removes_what_was_made_here_and_nothing_else(state, capsys):
    for name in ("environments", "runs", "precious"):
        (state / name).mkdir(parents=True)

    assert clean.run("clean", []) == 0

    assert sorted(path.name for path in state.iterdir()) == ["precious"]


def test_doctor_says_what_there_is_and_makes_nothing(state, capsys):
    code = doctor.run("doctor", ["--offline"])

    said = capsys.readouterr().out
    for words in ("Pythons", "used unless --python", "GB free", "postgresql", "mariadb", "redis"):
        assert words in said
    assert code == 0
    assert not (state / "environments").exists()


def test_doctor_says_what_stands_in_the_way(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "NEEDED_BYTES", 10**18)
    monkeypatch.setattr(doctor, "complaints", lambda: ["all.lock names a place."])

    assert doctor.run("doctor", ["--offline"]) == 1

    said = capsys.readouterr().out
    assert "all.lock names a place." in said.partition("stands in the way")[2]
    assert "about 1 GB is needed" in said


def test_documents_that_do_not_exist_are_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(docs, "ROOT", tmp_path)

    with pytest.raises(Refusal, match="docs/conf.py does not exist"):
        docs.run("docs", [])


def test_a_python_too_old_for_the_documents_is_told_and_stops_only_who_insists(monkeypatch, capsys):
    oldest = Discovery((Interpreter("/old", (3, 11, 1)),))
    monkeypatch.setattr(docs, "discover", lambda _: oldest)

    assert docs.run("docs", ["--if-possible"]) == 0
    assert "NOT BUILT" in capsys.readouterr().out
    with pytest.raises(Refusal, match=r"Python 3\.12 or newer"):
        docs.run("docs", [])


def test_a_check_that_has_no_rules_is_not_passed(monkeypatch, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    monkeypatch.setattr(lint, "ROOT", tmp_path)

    assert not lint.layers(None).is_good
    assert not lint.architecture(None).is_good


def test_a_check_that_fails_shows_what_it_found(capsys):
    assert lint.checked("good", lambda: lint.Verdict(True, "noise"))
    assert not lint.checked("bad", lambda: lint.Verdict(False, "line 7 is wrong\n"))

    said = capsys.readouterr().out
    assert "noise" not in said
    assert "      line 7 is wrong" in said


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Wish(), ["postgresql", "mariadb", "mysql", "redis"]),
        (Wish(is_quick=True), []),
        (Wish(only=("tools",)), []),
        (Wish(only=("sqlite",)), ["redis"]),
        (Wish(only=("mariadb",)), ["mariadb", "redis"]),
        (Wish(only=("django-5.2",)), ["postgresql", "mariadb", "redis"]),
    ],
)
def test_only_the_servers_that_are_wanted_are_looked_for(wish, expected):
    assert kinds_wanted(wish) == expected


def test_a_round_tells_its_tests_where_to_work(tmp_path, monkeypatch):
    class Somewhere:
        name, server, slug = "sqlite", None, "sqlite-django-6.1"

    target = Somewhere()
    one = rounds.Round(None, [target], [], None, token="ab12", place=tmp_path)

    told = one.variables(target)

    assert told["ONCE_TEST_DATABASE_URL"] == f"sqlite://{tmp_path}/sqlite-django-6.1/once.sqlite3"
    assert told["ONCE_TEST_TOKEN"] == "ab12_0"
    assert "ONCE_TEST_REDIS_URL" not in told


@pytest.mark.parametrize(
    ("lint_code", "failed", "test_code", "expected"),
    [(0, 0, 0, 0), (1, 0, 0, 1), (0, 2, 1, 1)],
)
def test_ci_ends_with_the_counts_and_fails_when_either_does(
    tmp_path, lint_code, failed, test_code, expected
):
    (tmp_path / "python3").write_text(PYTHON3 % (lint_code, failed, test_code))
    (tmp_path / "python3").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        [str(ROOT / ".ci" / "run")],
        env=environment({"PATH": path}),
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert done.returncode == expected
    assert lines[-1] == f"12 passed, {failed} failed, 0 skipped"
    assert "dev.py test --require sqlite,postgresql,mariadb,redis" in lines[-2]


def test_progress_is_one_line_per_step_with_its_time():
    code = (
        "from tools.progress import Step\n"
        "with Step('outer') as outer:\n    with Step('inner'): pass\n    outer.note = 'done'\n"
        "try:\n    with Step('third'): raise OSError\nexcept OSError: pass\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment({"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert [line.split()[:2] for line in said] == [["+", "inner"], ["+", "outer"], ["x", "third"]]
    assert said[1].endswith("s  done")


def test_the_state_directory_is_the_one_that_was_asked_for(state):
    assert state_directory() == state
