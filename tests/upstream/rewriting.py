"""Rewriting: what must change in a test so that it asks our backend instead of Django's.

Everything is a rule: a pattern, what stands in its place, and why. No rule
touches what a test asserts, but for words in which the backport or an older
Python differ from Django 6. A rule that finds nothing is an error, since then
the suite has changed under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.upstream.suites import Suite
from tools.errors import Refusal

FUNCTION = re.compile(r" *(?P<is_async>async )?def ")


@dataclass(frozen=True)
class Rule:
    """One pattern, what stands in its place, and why."""

    pattern: str
    replacement: str
    reason: str


TO_BACKPORT = (
    Rule(r"\bdjango\.tasks\b", "django_tasks", "the package that has to keep the contract"),
    Rule(
        r"^from django_tasks import Task, (.*)",
        r"from django_tasks.base import Task\nfrom django_tasks import \1",
        "its Task has to be fetched from where it is",
    ),
    Rule(r"\bInvalidTask(Backend)?\b", r"InvalidTask\1Error", "its names for them until 0.12"),
    Rule(r"async Tasks\.", "async tasks.", "its sentence until 0.12"),
    Rule(
        r"\"without an implementation for abstract method 'enqueue'\"",
        '""',
        "the sentence is Python's, and ends otherwise before 3.12",
    ),
)

TO_OUR_BACKEND = (
    Rule(
        r"from [\w.]+\.backends\.immediate import ImmediateBackend",
        "from tests.upstream.backends import DrainedBackend as ImmediateBackend",
        "our backend, drained at once, stands in ImmediateBackend's place",
    ),
    Rule(
        r'"django[._]tasks\.backends\.immediate\.ImmediateBackend"',
        '"tests.upstream.backends.DrainedBackend"',
        "the same, in settings",
    ),
    Rule(
        r"from [\w.]+\.backends\.dummy import DummyBackend",
        "from tests.upstream.backends import StoringBackend as DummyBackend",
        "our backend, which only stores, stands in DummyBackend's place",
    ),
    Rule(
        r'"django[._]tasks\.backends\.dummy\.DummyBackend"',
        '"tests.upstream.backends.StoringBackend"',
        "the same, in settings",
    ),
    Rule(r"\bSimpleTestCase\b", "TestCase", "jobs are rows, so the tests need a database"),
    Rule(
        r"available_apps = \[\]",
        'available_apps = ["django_once"]',
        "the tables to empty afterwards are ours",
    ),
)

TO_OUR_DECORATOR = (
    Rule(
        r"^from \S+ import TaskContext, task$",
        r"\g<0>\nfrom django_once import task",
        "the tasks are declared with our decorator",
    ),
    Rule(
        r"^from \. import tasks as test_tasks$",
        r"\g<0>\nfrom django_once import task",
        "those within a test too",
    ),
    Rule(r'"tasks\.tasks\.', '"declared_by_us.tasks.', "the folder has another name"),
)

IN_SYNC_TESTS = (
    Rule(
        r'object\.__setattr__\(enqueued_result, "status", TaskResultStatus\.SUCCESSFUL\)',
        "run_jobs(enqueued_result.backend)",
        "what the test writes into DummyBackend's memory, a job of ours reaches by running",
    ),
)

IN_ASYNC_TESTS = (
    Rule(
        IN_SYNC_TESTS[0].pattern,
        "await sync_to_async(run_jobs)(enqueued_result.backend)",
        IN_SYNC_TESTS[0].reason,
    ),
    Rule(
        r"default_task_backend\.results",
        "(await sync_to_async(lambda: default_task_backend.results)())",
        "DummyBackend's results are a list in memory, ours are a query, which Django wants "
        "outside of the event loop",
    ),
    Rule(
        r"\bresult\.refresh\(\)",
        "await sync_to_async(result.refresh)()",
        "looking at a job again is a query, too",
    ),
)

IMPORTS = {
    "sync_to_async": "from asgiref.sync import sync_to_async",
    "run_jobs": "from django_once.testing import run_jobs",
}

# Each suite runs twice: its tasks declared with Django's decorator, and with ours.
FOLDERS: Mapping[str, tuple[Rule, ...]] = {"tasks": (), "declared_by_us": TO_OUR_DECORATOR}


def rewritten(files: Mapping[str, str], suite: Suite) -> dict[str, str]:
    """Return the files of a suite as they run against our backend, by their paths."""
    texts: dict[str, str] = {}
    unused = set(IN_SYNC_TESTS + IN_ASYNC_TESTS)
    for folder, more in FOLDERS.items():
        rules = (*(TO_BACKPORT if suite.is_for_backport else ()), *TO_OUR_BACKEND, *more)
        unused |= set(rules)
        for name, text in files.items():
            texts[f"{folder}/{name}"], used = of_file(text, rules)
            unused -= used
    if unused:
        patterns = ", ".join(sorted(rule.pattern for rule in unused))
        raise Refusal(f"{suite.name} has changed: nothing in it is like {patterns}.")
    return texts


def of_file(text: str, rules: tuple[Rule, ...]) -> tuple[str, set[Rule]]:
    """Return a file with the rules applied to each line, and which of them were of use."""
    lines: list[str] = []
    used: set[Rule] = set()
    for line, is_async in with_surroundings(text):
        for rule in (*rules, *(IN_ASYNC_TESTS if is_async else IN_SYNC_TESTS)):
            line, count = re.subn(rule.pattern, rule.replacement, line, flags=re.MULTILINE)
            used |= {rule} if count else set()
        lines.append(line)
    needed = [one for name, one in IMPORTS.items() if any(name in line for line in lines)]
    return "\n".join([*needed, *lines, ""]), used


def with_surroundings(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it stands in an async function."""
    is_async = False
    for line in text.splitlines():
        found = FUNCTION.match(line)
        if found:
            is_async = bool(found.group("is_async"))
        yield line, is_async
