"""The books themselves: a run that balances is green, and each falsification of it is red."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.verifier.audit import FAILED as RED
from chaos.verifier.audit import INVALID, PASSED, audited
from chaos.verifier.books import BOOKS, violations
from chaos.verifier.facts import FAILED, RUNNING, SUCCESSFUL, Facts, Start, Write
from chaos.verifier.recovery import recoveries
from chaos.wish import Wish
from tests.chaos.runs import PIDS, WORKERS, balanced, name

pytestmark = pytest.mark.tools
VERIFIER = Path(__file__).parents[2] / "chaos" / "verifier"


def delete_a_line(facts: Facts) -> None:
    facts.starts = [start for start in facts.starts if start.job != name(4)]


def double_a_line(facts: Facts) -> None:
    facts.starts.append(replace(facts.starts[-1], id="another"))


def swap_two_lines(facts: Facts) -> None:
    one, other = facts.starts[0], facts.starts[-1]
    facts.starts[0], facts.starts[-1] = replace(one, job=other.job), replace(other, job=one.job)


def delete_a_job(facts: Facts) -> None:
    del facts.jobs[name(4)]


def keep_what_was_undone(facts: Facts) -> None:
    facts.undone.append(name(4))


def double_an_effect(facts: Facts) -> None:
    facts.effects.append(facts.effects[0])


def delete_an_effect(facts: Facts) -> None:
    facts.effects.pop()


def leave_an_effect_of_another_attempt(facts: Facts) -> None:
    facts.effects[-1] = replace(facts.effects[-1], fence=1)


def leave_a_job_running(facts: Facts) -> None:
    facts.jobs[name(4)] = replace(facts.jobs[name(4)], status=RUNNING)


def fail_what_must_succeed(facts: Facts) -> None:
    facts.jobs[name(3)] = replace(facts.jobs[name(3)], status=FAILED, reason="raised")


def start_twice_what_may_start_once(facts: Facts) -> None:
    facts.starts.append(Start("again", name(5), 2, 2, PIDS["south"]))


def end_it_twice(facts: Facts) -> None:
    last = next(one for one in facts.changes if one.job == name(4) and one.became == SUCCESSFUL)
    facts.changes.append(replace(last, number=999, was=SUCCESSFUL))


def end_what_another_holds(facts: Facts) -> None:
    """Plant what a settle without the nonce leaves: a late process ends another's attempt."""
    facts.changes = [
        replace(one, writer=PIDS["north"])
        if one.job == name(2) and one.became == SUCCESSFUL
        else one
        for one in facts.changes
    ]


def claim_under_an_old_nonce(facts: Facts) -> None:
    first = next(one for one in facts.changes if one.job == name(3) and one.became == RUNNING)
    facts.changes = [
        replace(one, claim=first.claim)
        if one.job == name(3) and one.fence == 2 and one.claim
        else one
        for one in facts.changes
    ]


def let_a_fence_stand_still(facts: Facts) -> None:
    facts.changes = [
        replace(one, fence=1) if one.job == name(3) and one.fence == 2 else one
        for one in facts.changes
    ]


def forget_a_failed_attempt(facts: Facts) -> None:
    facts.jobs[name(3)] = replace(facts.jobs[name(3)], history=())


def write_under_a_lower_fence(facts: Facts) -> None:
    facts.writes.append(Write("lock", 1, name(3), True))


def share_a_fence(facts: Facts) -> None:
    facts.writes.append(Write("lock", 2, name(3), True))


def break_a_series_off(facts: Facts) -> None:
    facts.series = [replace(facts.series[0], job=name(11))]


def let_two_generations_be_one(facts: Facts) -> None:
    facts.jobs[name(12)] = replace(facts.jobs[name(12)], generation=1)


def miss_a_due_moment(facts: Facts) -> None:
    facts.moments[1] = replace(facts.moments[1], through=102.0)


def fire_twice(facts: Facts) -> None:
    facts.moments.append(replace(facts.moments[0]))


def skip_without_a_reason(facts: Facts) -> None:
    facts.moments[1] = replace(facts.moments[1], reason="")


FALSIFICATIONS: list[Callable[[Facts], None]] = [
    delete_a_line, double_a_line, swap_two_lines, delete_a_job, keep_what_was_undone,
    double_an_effect, delete_an_effect, leave_an_effect_of_another_attempt, leave_a_job_running,
    fail_what_must_succeed, start_twice_what_may_start_once, end_it_twice, end_what_another_holds,
    claim_under_an_old_nonce, let_a_fence_stand_still, forget_a_failed_attempt,
    write_under_a_lower_fence, share_a_fence, break_a_series_off, let_two_generations_be_one,
    miss_a_due_moment, fire_twice, skip_without_a_reason,
]  # fmt: skip
WISH = Wish(
    database="postgresql", seconds=60, seed=1, mixture="crashy", jobs=6, lease=5.0, density=1.0,
    asked=1.0,
)  # fmt: skip


def test_the_books_of_a_run_in_which_all_went_well_balance():
    assert violations(balanced()) == []


@pytest.mark.parametrize("falsify", FALSIFICATIONS, ids=lambda falsify: falsify.__name__)
def test_a_falsified_run_is_red(falsify):
    facts = balanced()

    falsify(facts)

    assert violations(facts) != []


def test_every_book_goes_red_for_one_of_these():
    red = set()
    for falsify in FALSIFICATIONS:
        facts = balanced()
        falsify(facts)
        red |= {one.promise for one in violations(facts)}

    assert red == set(BOOKS)


def test_a_run_that_met_too_few_guards_is_invalid_and_not_green():
    facts = balanced()

    assert audited(WISH, 1.0, facts, []).verdict == INVALID

    facts.logged.update(
        {"refused": 9, "settles without an answer": 9, "commits without an answer": 9}
    )
    facts.cuts = [{"what": "claim"}] * 9
    own, other = PIDS["north"], PIDS["south"]
    taken = [one for one in facts.changes if one.was == RUNNING and one.claim is None]
    facts.changes += [replace(taken[0], worker_was=WORKERS[own], writer=own)] * 9
    facts.changes += [replace(taken[0], worker_was=WORKERS[own], writer=other, is_orphan=True)] * 9
    # Those changes break books, so the verdict is red before it is anything else.
    assert audited(WISH, 1.0, facts, []).missing == {}
    assert audited(WISH, 1.0, facts, []).verdict == RED


def test_a_run_with_a_complaint_is_red_whatever_its_books_say():
    assert audited(WISH, 1.0, balanced(), ["A group did not drain."]).verdict == RED
    assert PASSED not in {audited(WISH, 1.0, balanced(), []).verdict}


def test_recovery_is_measured_from_the_kill_to_the_moment_the_job_was_taken():
    facts = balanced()
    begun, ended = [one for one in facts.changes if one.job == name(6)][1:]
    facts.done.kills = [SimpleNamespace(what="worker", pids=(PIDS["south"],), at=begun.at + 0.02)]

    (found,) = recoveries(facts, lease=5.0, sweep=1.5)

    assert (found.jobs, found.is_undisturbed) == (1, True)
    assert found.seconds == pytest.approx(ended.at - begun.at - 0.02)


def test_a_line_that_was_written_twice_counts_once(tmp_path: Path):
    line = json.dumps(
        {"id": "x", "what": "start", "job": name(1), "attempt": 1, "fence": 1, "pid": 1}
    )
    facts = Facts()

    facts._read_ledger(f"{line}\n{line}\n")

    assert len(facts.starts) == 1


def test_the_verifier_shares_no_code_with_what_it_audits():
    imported = {
        name
        for file in VERIFIER.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for name in imports_of(node)
    }

    assert "chaos.verifier.facts" in imported
    assert [one for one in imported if one.startswith(("django", "chaos.project"))] == []


def imports_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
