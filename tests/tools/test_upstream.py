"""Tests of others are what was pinned, are rewritten whole, and none is left out unnamed."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import pytest

from tests.upstream.building import read, refuse_idle_exclusions
from tests.upstream.exclusions import exclusions_of
from tests.upstream.rewriting import IN_ASYNC_TESTS, of_file, rewritten
from tests.upstream.suites import SUITES
from tools import upstream
from tools.children import Answer
from tools.errors import Refusal
from tools.upstream import Sdist, fetched, sdist_of

DJANGO = SUITES["django-6.1"]


@pytest.fixture
def sdist(monkeypatch, tmp_path):
    """Return a source that is pinned, and not on this machine."""
    monkeypatch.setenv("ONCE_DEV_STATE", str(tmp_path / "a state"))
    return Sdist("django", "6.1.3", upstream.hashlib.sha256(b"right").hexdigest())


def pip_that_fetches(content):
    """Return what stands for running pip: it leaves a file with this content."""

    def ask(argv, **_):
        if "--dest" in argv:
            place = argv[argv.index("--dest") + 1]
            with open(f"{place}/django-6.1.3.tar.gz", "wb") as file:
                file.write(content)
        return Answer(0, "")

    return ask


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_the_source_of_every_suite_is_pinned(suite):
    assert sdist_of(suite.project, suite.series).version.startswith(suite.series)


def test_a_source_is_fetched_once(monkeypatch, sdist):
    monkeypatch.setattr(upstream, "ask", pip_that_fetches(b"right"))

    path = fetched(sdist, "python")

    assert path.read_bytes() == b"right"
    assert fetched(sdist, "python", offline=True) == path


def test_a_source_with_another_hash_is_refused(monkeypatch, sdist):
    monkeypatch.setattr(upstream, "ask", pip_that_fetches(b"wrong"))

    with pytest.raises(Refusal):
        fetched(sdist, "python")
    assert not sdist.path.exists()


def test_a_source_that_was_changed_on_disk_is_fetched_anew(monkeypatch, sdist):
    monkeypatch.setattr(upstream, "ask", pip_that_fetches(b"right"))
    fetched(sdist, "python").write_bytes(b"changed")

    assert fetched(sdist, "python").read_bytes() == b"right"


def test_offline_nothing_is_fetched(sdist):
    with pytest.raises(Refusal, match=r"django-6\.1\.3\.tar\.gz is not on this machine"):
        fetched(sdist, "python", offline=True)


def test_only_the_tests_are_read_from_a_source(tmp_path):
    path = tmp_path / "django-6.1.3.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("tests/tasks/tests.py", "tests/tasks/a.txt", "tests/tasks/b/c.py", "x.py"):
            member = tarfile.TarInfo(f"django-6.1.3/{name}")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))

    assert read(path, "tests/tasks") == {"tests.py": "abc"}
    with pytest.raises(Refusal, match="has no tests in tests/other"):
        read(path, "tests/other")


def test_what_asks_the_database_leaves_the_event_loop_in_async_tests_only():
    text = "def test_a():\n    result.refresh()\n\nasync def test_b():\n    result.refresh()\n"

    found, used = of_file(text, ())

    assert "def test_a():\n    result.refresh()\n" in found
    assert "async def test_b():\n    await sync_to_async(result.refresh)()\n" in found
    assert found.startswith("from asgiref.sync import sync_to_async\n")
    assert used == {IN_ASYNC_TESTS[-1]}


def test_a_rule_that_finds_nothing_is_an_error():
    with pytest.raises(Refusal, match=r"django-6\.1 has changed: nothing in it is like"):
        rewritten({"test_tasks.py": "class TaskTestCase(SimpleTestCase):\n"}, DJANGO)


def test_an_exclusion_of_a_test_that_is_not_there_is_an_error():
    names = [name.rpartition("::")[2] for name in exclusions_of(DJANGO)]
    text = "\n".join(f"    def {name}(self):" for name in names)

    refuse_idle_exclusions(DJANGO, {"test_tasks.py": text})
    with pytest.raises(Refusal, match="has no such test"):
        refuse_idle_exclusions(replace(DJANGO, is_for_backport=True), {"test_tasks.py": text})


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_the_reason_of_every_exclusion_is_a_sentence(suite):
    assert all(reason.endswith(".") for reason in exclusions_of(suite).values())
