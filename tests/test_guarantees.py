"""The table of crash points, and which tests walk each row: neither has what the other lacks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "guarantees.md"

CRASHES = "processes/test_survival_crash_points.py"
ENDINGS = "processes/test_survival_deaths.py"
PAUSES = "processes/test_survival_pauses.py"
UNKNOWN = "processes/test_survival_unknown.py"
DEATHS = "processes/test_deaths.py"
OUTSIDE = "processes/test_ends_from_outside.py"
LINES = "processes/test_lost_connections.py"
RACES = "races/test_meetings.py"
ONCE = "test_exactly_once.py"
DIES = f"{CRASHES}::test_a_worker_that_dies_at_a_point_leaves_what_was_promised"

WALKED = {
    "E1": [f"{ENDINGS}::test_a_process_that_dies_before_its_commit_has_enqueued_nothing"],
    "E2": [
        "processes/test_idle.py::"
        "test_a_worker_that_nothing_wakes_comes_fast_after_work_and_slower_when_idle"
    ],
    "E3": [f"{UNKNOWN}::test_an_enqueue_whose_answer_is_lost_raises_and_is_there_or_not"],
    "C1": [
        f"{UNKNOWN}::test_a_claim_whose_answer_is_lost_is_given_back_unburnt",
        f"{RACES}::test_a_claim_passes_over_what_another_has_locked",
    ],
    "C2": [
        f"{UNKNOWN}::test_a_claim_whose_answer_is_lost_is_given_back_unburnt",
        "sql/test_expire.py::test_a_claim_that_nobody_remembers_comes_back_without_an_attempt_burnt",
    ],
    "C3": [DIES],
    "C4": [
        f"{ENDINGS}::test_a_body_that_always_kills_its_process_pays_alone",
        f"{PAUSES}::test_without_evidence_of_a_death_all_run_alone_and_nobody_is_charged",
    ],
    "A1": [DIES],
    "A2": [f"{UNKNOWN}::test_a_start_whose_answer_is_lost_calls_the_body_once"],
    "A3": [DIES],
    "B1": [
        f"{DEATHS}::test_the_body_of_a_killed_child_has_begun_again_within_a_second",
        f"{ENDINGS}::test_a_body_that_always_kills_its_process_pays_alone",
    ],
    "B2": [
        f"{ENDINGS}::test_whatever_a_body_hangs_in_it_ends_at_its_timeout",
        f"{OUTSIDE}::test_a_silent_worker_without_a_body_is_replaced",
    ],
    "B3": [
        f"{DEATHS}::test_no_child_outlives_its_supervisor",
        f"{DEATHS}::test_a_killed_supervisors_body_begins_elsewhere_within_a_lease_and_a_half",
    ],
    "B4": [f"{DEATHS}::test_whatever_was_killed_together_is_expired_by_those_who_live"],
    "B5": [f"{CRASHES}::test_a_stopped_worker_that_wakes_late_is_refused"],
    "B6": [
        f"{OUTSIDE}::test_what_waits_behind_a_body_that_holds_the_interpreter_goes_to_others",
    ],
    "X1": [DIES],
    "X2": [
        f"{PAUSES}::test_a_host_that_is_paused_in_a_transaction_does_not_keep_its_row",
        f"{ONCE}::test_a_session_that_the_server_ended_is_a_failure_without_effects",
    ],
    "X3": [
        f"{PAUSES}::test_a_body_whose_lease_lapsed_while_its_transaction_was_open_commits",
        f"{RACES}::test_a_body_that_commits_after_its_lease_lapsed_has_succeeded",
    ],
    "X4": [
        f"{ONCE}::test_a_swallowed_error_that_broke_the_transaction_is_no_success",
        f"{ONCE}::test_a_transaction_that_was_ended_is_no_success_and_leaves_nothing",
        "survival/test_nasty_bodies.py::test_whatever_is_done_to_the_transaction_is_told",
    ],
    "S1": [DIES],
    "S2": [
        DIES,
        f"{UNKNOWN}::test_a_settle_whose_answer_is_lost_is_asked_again_and_no_body_runs_twice",
    ],
    "S3": ["sql/test_settle.py::test_a_refused_value_among_successes_is_cut_out_of_their_batch"],
    "W1": [
        f"{CRASHES}::test_a_sweep_that_dies_between_its_two_halves_is_finished_by_the_next",
        f"{RACES}::test_a_sweep_that_dies_is_repeated_by_the_next",
    ],
    "W2": [
        f"{RACES}::test_a_worker_that_renews_first_is_not_lost",
        f"{RACES}::test_a_worker_that_was_declared_lost_first_can_never_renew",
    ],
    "W3": [
        f"{RACES}::test_a_worker_that_claims_while_it_is_declared_lost_keeps_nothing",
        f"{RACES}::test_a_worker_that_is_declared_lost_while_it_claims_keeps_nothing",
    ],
    "N1": [f"{LINES}::test_ten_times_all_connections_are_cut_and_nothing_is_lost"],
    "O1": [f"{LINES}::test_workers_outlive_a_restart_of_the_server"],
    "O2": [
        f"{PAUSES}::test_a_database_that_keeps_all_waiting_for_longer_than_a_lease_costs_nobody_anything",
        f"{PAUSES}::test_who_wakes_after_a_pause_declares_nobody_lost",
        f"{LINES}::test_a_read_only_server_stops_the_work_and_not_the_workers",
    ],
    "F1": [
        "sql/test_settle.py::test_nobody_ends_an_attempt_under_another_nonce",
        "sql/test_expire.py::test_a_claim_that_nobody_remembers_comes_back_without_an_attempt_burnt",
    ],
}  # fmt: skip


def rows() -> list[str]:
    return re.findall(r"^\| ([A-Z]\d+) \|", PAGE.read_text(), re.MULTILINE)


def defined_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_rows_of_the_table_are_those_that_are_walked():
    assert sorted(rows()) == sorted(WALKED)


@pytest.mark.parametrize("row", WALKED)
def test_the_defined_in_a_row_are_there(row):
    for place in WALKED[row]:
        path, _, name = place.partition("::")

        assert name in defined_in(ROOT / "tests" / path)


def test_the_crash_points_that_are_walked_are_of_rows_that_name_them():
    """A row of the list of crashes is one for which the table of tests names that list."""
    source = (ROOT / "tests" / CRASHES).read_text()

    assert set(re.findall(r'Crash\("([A-Z]\d+)"', source)) == {
        row for row, places in WALKED.items() if DIES in places
    }
