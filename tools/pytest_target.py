"""The pytest plug-in that keeps the tests of one target: `--target plain,engine`.

Each test is of one kind: `tools`, `redis`, `slow` (it takes seconds, and so runs
once, on the newest Django and on PostgreSQL where there is one), `processes` (it
starts some, and so runs on every database with the newest Django), `engine` (it
needs a database, and so runs on every one), else `plain` (it runs once per
combination of Python and Django). A test that asks for a database is an engine test, marked or not.
Without --target, every test runs.

A test that fails is asked once more, and the run says so; it must pass then. Many
meet real processes and servers beside those of another target, and some wait in vain.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

KINDS = ("tools", "redis", "slow", "processes", "engine", "plain")
MARKED = ("tools", "redis", "slow")
asked_again: list[str] = []
FIXTURES_OF_PROCESSES = {"start", "schedulers", "project"}
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "live_server"}


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--target", default="", help="kinds of tests to keep: " + ", ".join(KINDS))


def pytest_configure(config: Any) -> None:
    unknown = set(wanted(config)) - set(KINDS)
    if unknown:
        raise pytest.UsageError(
            "--target knows %s, and not %s." % (", ".join(KINDS), ", ".join(sorted(unknown)))
        )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    kinds = wanted(config)
    if not kinds:
        return
    kept = [item for item in items if kind_of(item) in kinds]
    dropped = [item for item in items if kind_of(item) not in kinds]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> bool | None:
    """Run a test, and once more if it fails; what it says last counts."""
    if not wanted(item.config):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        asked_again.append(item.nodeid)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name in asked_again:
        terminalreporter.write_line("ASKED AGAIN after a failure: " + name)


def wanted(config: Any) -> list[str]:
    return [kind for kind in config.getoption("--target").split(",") if kind]


def kind_of(item: Any) -> str:
    """Return the one kind a test is of."""
    for kind in MARKED:
        if item.get_closest_marker(kind) is not None:
            return kind
    if FIXTURES_OF_PROCESSES & set(getattr(item, "fixturenames", ())):
        return "processes"
    if any(map(item.get_closest_marker, ("engine", "races"))) or asks_for_database(item):
        return "engine"
    return "plain"


def asks_for_database(item: Any) -> bool:
    if item.get_closest_marker("django_db") is not None:
        return True
    if DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    classes = inspect.getmro(item.cls) if getattr(item, "cls", None) else ()
    return any(one.__name__ == "TransactionTestCase" for one in classes)
