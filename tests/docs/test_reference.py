"""The reference and the code name the same things, in both directions.

A test that fails here says which page lacks a line, or which line has nothing behind it.
"""

from __future__ import annotations

import argparse
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from django.db import models as django_models

import django_once
from django_once import conf, errors, models, pytest_plugin, testing
from django_once.compat import ContextOf
from django_once.context import Context
from django_once.definitions import options
from django_once.definitions.retry import Retry
from django_once.management import rows as shown
from django_once.management import watch
from django_once.management.commands.once import Command
from django_once.management.verbs import VERBS, status
from django_once.sql import values
from tests.docs.pages import DOCS, quoted, rows, sections

REFERENCE = DOCS / "reference"
SOURCE = Path(django_once.__file__).parent
TEXTS = {path: path.read_text() for path in SOURCE.rglob("*.py")}
# What every command of Django's takes.
OF_DJANGO = {
    "-h", "--help", "-v", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color",
    "--force-color", "--skip-checks",
}  # fmt: skip


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def named(text: str) -> set[str]:
    """Return the names in the first column of the tables of a text."""
    return {name.split("(")[0] for cells in rows(text) for name in quoted(cells[0])}


def everywhere() -> set[str]:
    """Return what any page of the reference names: what is new may have a page of its own."""
    return {name for one in REFERENCE.glob("*.md") for name in named(one.read_text())}


def flags(verb: str) -> set[str]:
    parser = argparse.ArgumentParser()
    VERBS[verb].add_arguments(parser)
    if getattr(VERBS[verb], "WATCHES", False):
        watch.add_watch(parser)
    return {flag for action in parser._actions for flag in action.option_strings} - OF_DJANGO


def test_every_option_is_documented_with_its_default_and_its_reason():
    text = sections(REFERENCE / "settings.md")["OPTIONS"]

    documented = {quoted(key)[0]: (quoted(default)[0], why) for key, default, _, why in rows(text)}

    said = {option.key: (repr(option.default), option.reason) for option in conf.TABLE}
    assert documented == said


def test_every_option_of_a_task_is_documented():
    text = sections(REFERENCE / "task-options.md")["Ours"]

    assert named(text) == set(options.NAMES)


def test_every_argument_of_a_retry_is_documented_with_its_default():
    text = sections(REFERENCE / "task-options.md")["Retry"]

    documented = {quoted(name)[0]: quoted(default)[0] for name, default, _ in rows(text)}

    defaults = {one.name: one.default for one in fields(Retry)}
    written = {"(<class 'Exception'>,)": "(Exception,)"}
    said = {name: written.get(repr(one), repr(one)) for name, one in defaults.items()}
    assert documented == said


def test_every_check_is_documented_and_every_remedy_is_said():
    found = {
        id for text in TEXTS.values() for id in re.findall(r'"(once\.[EWI]\d{3})"', text)
    }  # fmt: skip

    documented = {quoted(cells[0])[0]: cells for cells in rows(page("system-checks"))}

    assert set(documented) == found
    assert all(all(cells) and len(cells) == 3 for cells in documented.values())


def test_every_verb_is_documented_in_the_order_of_its_help():
    titles = list(sections(REFERENCE / "command-line.md"))

    assert titles == [f"once {verb}" for verb in VERBS]


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_of_a_verb_is_documented(verb):
    text = sections(REFERENCE / "command-line.md")[f"once {verb}"]

    documented = {
        flag for cells in rows(text) for flag in quoted(cells[0]) if flag.startswith("-")
    }  # fmt: skip

    assert documented == flags(verb)


def test_django_adds_no_flag_that_is_not_known_here():
    parser = Command().create_parser("manage.py", "once")

    assert {flag for action in parser._actions for flag in action.option_strings} <= OF_DJANGO | {
        "--version"
    }


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("A job", {*shown.JOB, "state"}),
        ("An entry of the history", set(shown.ENTRY)),
        ("A worker", set(shown.WORKER)),
    ],
)
def test_every_key_of_the_json_is_documented(title, keys):
    assert named(sections(REFERENCE / "json.md")[title]) == keys


def test_every_key_that_the_other_verbs_print_is_documented():
    calls = [
        call
        for verb in VERBS.values()
        for call in re.findall(r"screen\.json\((.*?)\)\n", inspect.getsource(verb), re.DOTALL)
    ]
    printed = {key for call in calls for key in re.findall(r'"(\w+)":', call)}
    printed |= {one.name for kind in (status.Picture, status.Queue) for one in fields(kind)}

    assert printed - {"jobs", "workers"} <= set(quoted(page("json")))
    assert {"busy", "retried", "oldest_ready_seconds"} <= printed


def test_every_public_name_is_documented():
    listed = named(sections(REFERENCE / "public-names.md")["django_once"])

    assert listed == set(django_once.__all__)
    assert all(hasattr(django_once, name) for name in listed)


def test_every_error_is_documented():
    raised = {
        name for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.OnceError)
    }  # fmt: skip

    assert named(sections(REFERENCE / "public-names.md")["django_once.errors"]) <= raised
    assert raised <= everywhere()


def test_documented_models_are_models():
    text = sections(REFERENCE / "public-names.md")["Settings and models"]

    named_models = [name for name in named(text) if name.startswith("django_once.models.")]

    assert named_models
    for name in named_models:
        assert issubclass(getattr(models, name.rpartition(".")[2]), django_models.Model)


def test_every_name_of_testing_is_documented():
    text = page("testing").partition("## pytest")[0]

    assert named(text) == set(testing.__all__)


def test_every_signature_in_the_page_about_testing_is_that_of_the_code():
    for cells in rows(page("testing").partition("## pytest")[0]):
        name, bracket, said = quoted(cells[0])[0].partition("(")
        if bracket:
            parameters = inspect.signature(getattr(testing, name)).parameters.values()
            plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
            written = str(inspect.Signature(plain)).replace(", /", "")
            assert "(" + said.replace('"', "'") == re.sub(r"(\w) = ", r"\1=", written)


def test_every_fixture_is_documented():
    text = sections(REFERENCE / "testing.md")["pytest"]

    found = re.findall(r"@pytest\.fixture\ndef (\w+)", inspect.getsource(pytest_plugin))

    assert named(text) == set(found)


def test_every_member_of_the_context_is_documented():
    own = {name for name in vars(Context) if not name.startswith("_")}
    theirs = {name for name in vars(ContextOf[..., object]) if not name.startswith("_")}

    assert named(page("context")) == own | theirs | {"task_result"}


def test_every_reason_is_documented():
    text = page("results").partition("`reason`")[2].partition("## ")[0]

    reasons = {
        value for name, value in vars(values).items()
        if name.isupper() and isinstance(value, str)
    }  # fmt: skip
    # Where a job waits is no reason.
    reasons -= {
        values.UNKNOWN_TASK, values.PREDECESSOR, values.LIMIT, values.FAIR, values.PAUSED,
        values.STRUCK, values.BREAKER, values.LOCK,
    }  # fmt: skip
    assert named(text) == reasons


def test_every_line_of_the_log_is_documented():
    text = sections(REFERENCE / "signals-and-logs.md")["Logs"]

    told = {
        line
        for source in TEXTS.values()
        for line in re.findall(
            r"ours(?:\.\w+|, level\))\(\s*(?:\w+,\s*)?\"([a-z_]+\.[a-z_]+)\b", source
        )
    }
    assert named(text) <= told
    assert told <= everywhere()
