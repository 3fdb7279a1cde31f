"""Children get a clean environment, a time limit, and no say over the packages of others."""

from __future__ import annotations

import os
import sys

import pytest

from tools.children import TIMED_OUT, ask, environment


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET"])
def test_what_leads_a_child_astray_is_kept_from_it(monkeypatch, name):
    monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")

    assert name not in environment()
    assert environment()["PIP_INDEX_URL"] == "https://packages.example/simple"


def test_a_child_answers_with_what_it_printed_and_how_it_ended():
    code = "import sys; print(input()); print('complaint', file=sys.stderr); sys.exit(3)"

    answer = ask([sys.executable, "-c", code], said="a question\n")

    assert (answer.code, answer.is_good) == (3, False)
    assert sorted(answer.output.split("\n")) == ["", "a question", "complaint"]


def test_a_child_that_does_not_end_is_given_up():
    answer = ask([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.3)

    assert answer.code == TIMED_OUT
    assert "no end within" in answer.output


def test_a_file_that_a_child_shall_keep_is_open_in_it(tmp_path):
    with open(tmp_path / "file", "w") as file:
        code = f"import os; os.fstat({file.fileno()})"

        assert ask([sys.executable, "-c", code], keep=[file.fileno()]).is_good
        assert not ask([sys.executable, "-c", code]).is_good
        assert os.fstat(file.fileno())
