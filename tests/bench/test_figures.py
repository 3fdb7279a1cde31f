"""A figure says whether it is good enough; a run says what was measured and what was not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench.catalogue import NAMES, names_for
from bench.figures import Figure, Gate, paired, percentile
from bench.stage import with_database
from tools.checkout import ROOT


def figure(value, ratio=None, *gates):
    return Figure("drain", "one", value, "jobs/s", ratio=ratio, gates=gates)


@pytest.mark.parametrize(
    ("gate", "value", "ratio", "met"),
    [
        (Gate("value", least=5.0), 5.0, None, True),
        (Gate("value", least=5.0), 4.9, None, False),
        (Gate("value", most=5.0), 5.1, None, False),
        (Gate("ratio", least=0.5), 1.0, 0.5, True),
        (Gate("ratio", least=0.5), 9.0, 0.4, False),
        (Gate("ratio", least=0.5), 9.0, None, False),
    ],
)
def test_a_gate_holds_for_what_it_names(gate, value, ratio, met):
    assert figure(value, ratio, gate).is_met is met


def test_a_figure_without_a_gate_is_neither_good_nor_bad():
    assert figure(1.0).is_met is None


def test_one_gate_that_is_missed_is_enough():
    assert figure(7.0, 0.1, Gate("value", least=5), Gate("ratio", least=0.5)).is_met is False


def test_the_ratio_is_that_of_a_round_and_not_of_the_medians():
    limits, reached = iter([100.0, 10.0, 50.0]), iter([50.0, 9.0, 20.0])

    pair = paired(3, lambda: next(limits), lambda: next(reached))

    assert (pair.raw, pair.value, pair.ratio) == (50.0, 20.0, 0.5)


def test_a_percentile_is_a_value_that_was_seen():
    values = [float(n) for n in range(100, 0, -1)]

    assert [percentile(values, part) for part in (0.0, 0.5, 0.99, 1.0)] == [1.0, 51.0, 100.0, 100.0]


def test_what_is_named_is_measured_whatever_the_form_is():
    assert names_for("postgresql", "quick", ("growth",)) == ["growth"]
    assert names_for("sqlite", "usual", ("growth",)) == []
    assert "growth" not in names_for("postgresql", "usual", ())
    assert names_for("postgresql", "long", ()) == list(NAMES)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///?host=/tmp/x&user=postgres",
        "postgresql://u:p@h:1/",
        "mysql://root@localhost/?unix_socket=/x.sock",
    ],
)
def test_a_database_of_its_own_is_named_in_the_url_of_its_server(url):
    before, _, after = url.partition("?")

    own = with_database(url, "once_bench_1")

    assert own == f"{before}once_bench_1" + (f"?{after}" if after else "")


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_tiny_run_ends_with_a_table_and_a_report(tmp_path):
    path = tmp_path / "bench.json"

    done = bench("--quick", "--database", "sqlite", "--only", "bulk,drain", "--jobs", "300",
                 "--json", str(path))  # fmt: skip

    report = json.loads(path.read_text())
    assert "drain: 1 process" in done.stdout, done.stdout + done.stderr
    assert report["databases"]["sqlite"]["complaints"] == []
    figures = report["databases"]["sqlite"]["figures"]
    assert {one["measure"] for one in figures} == {"bulk", "drain"}
    # So few jobs may be done before the first look, so only what was stored has a rate for sure.
    assert all(one["value"] > 0 and one["raw"] > 0 for one in figures if one["measure"] == "bulk")


def test_what_cannot_be_meant_is_refused_before_anything_starts():
    for wrong in (["--only", "speed"], ["--database", "oracle"], ["--jobs", "0"]):
        done = bench(*wrong)

        assert done.returncode == 2
        assert wrong[1] in done.stderr


def test_a_server_that_does_not_answer_is_named_and_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("ONCE_BENCH_SERVER_URL", "postgresql://nobody@127.0.0.1:1/")
    path = tmp_path / "bench.json"

    done = bench("--quick", "--only", "drain", "--json", str(path))

    assert done.returncode == 1
    assert "postgresql was skipped" in done.stdout
    assert "skipped" in json.loads(path.read_text())["databases"]["postgresql"]
