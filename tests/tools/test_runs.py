"""Runs of pytest are counted from their reports, and none that went wrong is counted as well."""

from __future__ import annotations

import os
import sys
import time

import pytest

from tools import runs
from tools.counts import Counts, read_counts, total
from tools.environments import Environment
from tools.interpreters import Interpreter
from tools.runs import run_all, why_bad
from tools.servers.ledger import began
from tools.targets import Target

BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><failure>x</failure></testcase>
<testcase name="d"><error>x</error></testcase>
<testcase name="e"><skipped/></testcase>
</testsuite></testsuites>"""

TESTS = {
    "good": "def test_one(): pass\ndef test_two(): pass\n",
    "bad": (
        "import pytest\ndef test_one(): pass\ndef test_two(): assert 0\n"
        "@pytest.mark.skip\ndef test_three(): pass\n"
        "@pytest.fixture\ndef broken(): raise ValueError\ndef test_four(broken): pass\n"
    ),
    "empty": "",
    "syntax": "def (\n",
    "crash": "import os\ndef test_one(): os._exit(3)\n",
    "told": "import os\ndef test_one(): assert os.environ['ONCE_SAID'] == 'this'\n",
    "slow": "import time\ndef test_one(): time.sleep(60)\n",
}


@pytest.fixture
def run(tmp_path, capfd):
    """Return a function that runs targets made of little tests, and how each ended."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*names):
        made = [target(tmp_path, name) for name in names]
        arguments = ["-c", str(tmp_path / "pytest.ini")]
        tidied = []
        ended = run_all(
            made, lambda one: dict(BARE), arguments, lambda one: tidied.append(one.name)
        )
        assert sorted(tidied) == sorted(names)
        return ended

    return run


def target(directory, name):
    (directory / f"test_{name}.py").write_text(TESTS[name])
    environment = Environment("test", Interpreter(sys.executable, (3, 13, 0)), directory)
    found = Target(name, "group", environment, ("plain",), tests=(f"{directory}/test_{name}.py",))
    object.__setattr__(found, "environment", _This(environment))
    return found


class _This:
    """The environment that this test itself runs in."""

    python = sys.executable

    def __init__(self, environment):
        self.interpreter = environment.interpreter

    def version_of(self, package):
        return "6.1"


def test_two_runs_are_counted_and_shown_one_after_the_other(run, capfd):
    good, bad = run("good", "bad")

    assert (good.counts, good.is_good) == (Counts(2, 0, 0), True)
    assert (bad.counts, bad.is_good) == (Counts(1, 2, 1), False)
    shown = capfd.readouterr().out
    assert shown.index("good") < shown.index("2 passed") < shown.index("bad")
    assert shown.index("bad") < shown.index("assert 0")


def test_a_run_without_tests_is_a_failure(run):
    (empty,) = run("empty")

    assert (empty.complaint, empty.counts) == ("collected no test", Counts(0, 1, 0))


def test_a_run_that_cannot_be_collected_is_a_failure(run):
    (syntax,) = run("syntax")

    assert not syntax.is_good
    assert syntax.counts.failed == 1


def test_a_run_that_dies_is_a_failure(run):
    (crash,) = run("crash")

    assert "left no report" in crash.complaint
    assert crash.counts == Counts(0, 1, 0)


def test_a_run_that_does_not_end_is_ended(run, monkeypatch):
    monkeypatch.setattr(runs, "SECONDS", 1)
    since = time.monotonic()

    (slow,) = run("slow")

    assert "did not end" in slow.complaint
    assert not slow.is_good
    assert time.monotonic() - since < 20


def test_an_interrupt_ends_every_run_and_tidies_up(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    slow, pids, tidied = target(tmp_path, "slow"), [], []

    def interrupt(screen):
        pids.append(screen.runs[0].process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.Screen, "follow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_all([slow], lambda one: dict(BARE), ["-c", str(tmp_path / "pytest.ini")], tidied.append)

    assert not began(pids[0])
    assert tidied == [slow]


def test_a_program_of_its_own_stands_in_for_pytest(tmp_path):
    code = (
        "import sys; path = sys.argv[1].partition('=')[2]; "
        f"open(path, 'w').write({REPORT!r}); print('done')"
    )
    one = target(tmp_path, "good")
    object.__setattr__(one, "program", ("-c", code))

    (ended,) = run_all([one], lambda one: dict(BARE), [], lambda one: None)

    assert ended.counts == Counts(2, 2, 1)


def test_a_report_is_counted(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)

    assert read_counts(tmp_path / "report.xml") == Counts(2, 2, 1)
    assert read_counts(tmp_path / "none.xml") is None
    (tmp_path / "half.xml").write_text(REPORT[:60])
    assert read_counts(tmp_path / "half.xml") is None


def test_the_line_of_counts_is_plain():
    counted = total([Counts(1400, 0, 2), Counts(12, 0, 1)])

    assert counted.line == "1412 passed, 0 failed, 3 skipped"


@pytest.mark.parametrize(
    ("code", "counts", "reason"),
    [
        (0, Counts(3, 0, 0), ""),
        (1, Counts(3, 1, 0), ""),
        (1, Counts(3, 0, 0), "it ended with 1"),
        (0, Counts(0, 0, 0), "collected no test"),
        (5, Counts(0, 0, 0), "collected no test"),
        (3, Counts(3, 0, 0), "it ended with 3"),
        (-9, None, "it ended with -9 and left no report"),
    ],
)
def test_what_is_wrong_with_a_run_has_words(code, counts, reason):
    assert why_bad(code, counts) == reason


def test_what_a_run_is_told_reaches_its_tests(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    one = target(tmp_path, "told")

    (ended,) = run_all(
        [one],
        lambda one: {**BARE, "ONCE_SAID": "this"},
        ["-c", f"{tmp_path}/pytest.ini"],
        lambda one: None,
    )

    assert ended.is_good, os.listdir(tmp_path)
