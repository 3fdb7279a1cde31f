"""What cannot apply: each test that is not run against our backend, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tests.upstream.suites import Suite

IN_EVERY_SUITE: Mapping[str, str] = {
    "ImmediateBackendTestCase::test_cannot_get_result": (
        "It asserts that ImmediateBackend keeps no results; ours keeps them."
    ),
    "ImmediateBackendTestCase::test_cannot_refresh_result": (
        "It asserts that ImmediateBackend keeps no results; ours keeps them."
    ),
    "ImmediateBackendTestCase::test_cannot_pass_run_after": (
        "It asserts that ImmediateBackend cannot run a task later; ours can."
    ),
}

# A name may begin with a folder, where the test applies in the other.
ON_BACKPORT: Mapping[str, str] = {
    "TaskTestCase::test_unpickle_arbitrary_string": (
        "It calls a private method of Django's own Task, which the backport's has not got."
    ),
    "TaskTestCase::test_unpickle_non_task_object": (
        "It calls a private method of Django's own Task, which the backport's has not got."
    ),
    "tasks/TaskTestCase::test_run_after_in_decorator": (
        "It asserts a sentence of Django's own decorator; the backport's leaves it to Python."
    ),
}


def exclusions_of(suite: Suite) -> dict[str, str]:
    """Return the reasons of a suite's excluded tests, by class and name."""
    return {**IN_EVERY_SUITE, **(ON_BACKPORT if suite.is_for_backport else {})}
