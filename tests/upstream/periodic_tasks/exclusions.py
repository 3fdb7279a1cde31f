"""What cannot apply: each test that is not run against our schedules, and why."""

from __future__ import annotations

from collections.abc import Mapping

THREAD = "It asks for the private parts of a thread; ours is a process, tests/schedules runs it."
PATCHES = "It patches a private function of theirs; ours meet in tests/schedules, with processes."
DISABLES = (
    "Their defect: a deploy disables what it does not declare, also another service's; ours is "
    "fired by those who declare it, and nobody's switch is touched."
)
UNKNOWN = (
    "Their moment is lost when a task is unknown to the scheduler that looked; ours stays due for "
    "one that knows it, and verify tells that it is late."
)
ARGUMENTS = (
    "Its schedule calls the task with what that does not take; ours is refused at once, not when "
    "it runs."
)
SETTING = "It is about a setting of theirs."
ERROR = "It names an error of theirs; ours is told by tests/schedules."

# Whole files, then classes, then tests.
FILES: Mapping[str, str] = {
    "test_admin.py": "It asks for the attributes of their admin classes.",
    "test_apps.py": "Their app can start a thread in every process that loads Django; ours cannot.",
    "test_commands.py": "It patches the class of their scheduler.",
    "test_models.py": "It is about save() and clean() of their models; ours are changed by verbs.",
    "test_task_resolver.py": "Theirs imports what a row names; a path in a row is no import here.",
    "test_type_checking.py": "It checks the types of their own sources.",
}
EXCLUSIONS: Mapping[str, str] = {
    "TestSchedulerThread": THREAD,
    "TestSchedulerConcurrency": PATCHES,
    "TestStaleCleanupConcurrency": PATCHES,
    "TestSchedulerTick::test_failed_task_advances_next_run_at": UNKNOWN,
    "TestSchedulerStaleCleanup::test_cleanup_and_delete_failures_do_not_block_tick": PATCHES,
    "TestSchedulerStaleCleanup::test_cleanup_warns_on_final_attempt": (
        "It reads the sentences of their log; ours tells when a permit is given up."
    ),
    "TestSchedulerStaleCleanup::test_cleanup_respects_redispatch_after": SETTING,
    "TestEnqueueScheduledTask::test_dispatch_execution_failure_leaves_dispatched_at_null": (
        "It hands a broken task to their private function; tests/schedules has a broken broker."
    ),
    "TestEnqueueScheduledTask::test_exactly_once_invalid_queue_does_not_create_execution": ERROR,
    "TestEnqueueScheduledTask::test_unresolvable_task_raises": ERROR,
    "TestEnqueueScheduledTask::test_exactly_once_merges_kwargs": ARGUMENTS,
    "TestScheduleRegistry::test_register_with_options": ARGUMENTS,
    "TestSyncCodeSchedules::test_syncs_options": ARGUMENTS,
    "TestSchedulerStaleCleanup::test_cleanup_skips_disabled_task": (
        "Their defect: a run that was due is never sent again when its schedule is disabled after."
    ),
    "TestFullFlow::test_sync_then_remove_then_sync": DISABLES,
    "TestSyncCodeSchedules::test_disables_removed_code_entries": DISABLES,
    "TestSyncCodeSchedules::test_re_enables_previously_disabled_code_entry": DISABLES,
    "TestSyncCodeSchedules::test_sync_is_atomic": "It patches update_or_create of their manager.",
}


def reason_for(nodeid: str) -> str | None:
    """Return why a test is not run, or None."""
    _, _, name = nodeid.partition("::")
    return EXCLUSIONS.get(name) or EXCLUSIONS.get(name.partition("::")[0])
