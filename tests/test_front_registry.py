"""The one register of tasks: what a path that stands in a row may lead to."""

from __future__ import annotations

import sys
import types

import pytest

from django_once import task
from django_once.definitions import registry
from tests.app import tasks

HERE = __name__


@task
def known() -> None: ...


class Place:
    @task
    def inner() -> None: ...  # type: ignore[misc]


@pytest.fixture
def apart(monkeypatch):
    """Let a test declare what no other test shall see."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.setattr(registry, "_options", dict(registry._options))


def declared(source: str, name: str = "declared_by_a_test", line: int = 1):
    """Load a module from its source, as a project would."""
    module = types.ModuleType(name)
    exec(compile("\n" * line + source, f"{name}.py", "exec"), module.__dict__)
    sys.modules[name] = module
    return module


def test_a_task_is_found_by_its_path():
    assert registry.find("tests.app.tasks.add") is tasks.add
    assert "tests.app.tasks.add" in registry.paths()
    assert tasks.add in registry.tasks()


def test_a_task_in_the_body_of_a_class_is_found():
    assert registry.find(f"{HERE}.Place.inner") is Place.inner


@pytest.mark.parametrize(
    "path",
    ["", ".", "add", "tests.app.tasks", "tests.app.tasks.Note", "tests.app.tasks.nothing",
     "os.system", "tests.app.tasks.add.func", "a..b", "x" * 10_000, "builtins.eval"],
)  # fmt: skip
def test_a_path_that_leads_to_no_task_finds_nothing(path):
    assert registry.find(path) is None


def test_a_path_in_a_row_never_loads_a_module():
    sys.modules.pop("this", None)

    assert registry.find("this.s") is None
    assert "this" not in sys.modules


def test_a_modules_own_getattr_is_not_asked(apart):
    module = declared("def __getattr__(name): raise RuntimeError(name)")

    assert registry.find(f"{module.__name__}.anything") is None


def test_changed_copies_of_a_task_are_not_kept(apart):
    before = len(registry.tasks())

    for priority in range(50):
        known.using(priority=priority, queue_name="mail")

    assert len(registry.tasks()) == before
    assert registry.ambiguous() == {}


def test_two_functions_of_one_path_are_told(apart):
    twice = "from django_once import task\n@task\ndef same(): ...\n"
    declared(twice + twice)

    ((path, both),) = registry.ambiguous().items()

    assert path == "declared_by_a_test.same"
    assert len(both) == 2


def test_one_function_with_two_sets_of_options_is_told(apart):
    declared(
        "from django_once import task\ndef same(): ...\n"
        "quick, slow = task(timeout='1s')(same), task(timeout='1h')(same)"
    )

    assert list(registry.ambiguous()) == ["declared_by_a_test.same"]


def test_a_module_that_is_loaded_anew_is_no_second_task(apart):
    source = "from django_once import task\n@task\ndef same(): return {}\n"
    declared(source.format(1))
    newer = declared(source.format(2))

    assert registry.ambiguous() == {}
    assert registry.find("declared_by_a_test.same") is newer.same


def test_wrapped_functions_of_one_path_are_told_apart(apart):
    declared(
        "import functools\nfrom django_once import task\n"
        "def wrapping(function):\n"
        "    @functools.wraps(function)\n"
        "    def wrapper(): return function()\n"
        "    return wrapper\n"
        "@task\n@wrapping\ndef same(): ...\n"
        "@task\n@wrapping\ndef same(): ...\n"
    )

    assert list(registry.ambiguous()) == ["declared_by_a_test.same"]
