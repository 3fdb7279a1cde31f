"""`once strike`, `once restore` and `once resume breaker`: what people and programs see of them."""

from __future__ import annotations

import pytest

from django_once.models import AuditEntry, Job, Strike
from django_once.models.tally import breaker
from django_once.testing import run_jobs
from tests.flow.tasks import call_partner, charge
from tests.jobs import DATABASE
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]
HERE = ("--backend", "default")


def test_an_argument_is_struck_with_a_reason_and_restored():
    charge.enqueue(7)

    answer = once("strike", "flow.tasks.charge", "order=7", "--reason", "stolen", *HERE)

    assert (answer.code, answer.out) == (
        0, f"Struck {charge.module_path} with order=7. Those jobs wait when they are met.\n",
    )  # fmt: skip
    assert run_jobs() == 0
    (row,) = once("strike", "--json").json["strikes"]
    assert (row["task"], row["arguments"], row["reason"], row["outcome"]) == (
        charge.module_path, {"order": 7}, "stolen", "wait",
    )  # fmt: skip
    header, line, *_ = once("strike").lines
    assert header.split()[:3] == ["TASK", "ARGUMENTS", "THEN"]
    assert "@" in row["struck_by"]
    assert "stolen" in line
    answer = once("restore", charge.module_path, "order=7", *HERE)
    assert answer.out == f"Restored {charge.module_path} with order=7.\n"
    assert run_jobs() == 1
    about = f"{charge.module_path} with order=7"
    kept = AuditEntry.objects.order_by("pk").values_list("act", "kind", "about", "outcome")
    assert list(kept) == [
        ("strike", "task", about, "Struck."), ("restore", "task", about, "Restored."),
    ]  # fmt: skip


def test_struck_jobs_may_end():
    charge.enqueue(7)

    once("strike", charge.module_path, "--cancel", *HERE)

    assert run_jobs() == 0
    assert Job.objects.get().reason == "cancelled"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("strike", "tests.flow.tasks.charge", "order"), "Write an argument as NAME=VALUE"),
        (("strike", "tests.flow.tasks.charge", "colour=red"), "takes no argument 'colour'"),
        (("strike", "tests.flow.tasks.charge", "--reason", "x" * 300), "at most 255"),
        (("restore", ""), "Say which task"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(words, sentence):
    answer = once(*words)

    assert answer.code == 2
    assert sentence in answer.err
    assert not Strike.objects.exists()


def test_restoring_what_is_not_struck_says_so():
    answer = once("restore", "tests.flow.tasks.charge", *HERE)

    assert (answer.code, answer.err) == (
        1, "tests.flow.tasks.charge was not struck. See what is: once strike\n",
    )  # fmt: skip
    assert once("strike").out == "Nothing is struck.\n"


def test_an_open_breaker_is_a_problem_that_a_person_can_end():
    path = call_partner.module_path
    rule = breaker.Rule(failures=1, within=60, reopen=30)
    breaker.count(DATABASE, "default", path, rule, {call_partner.enqueue(1).id: False})

    answer = once("status", *HERE)
    assert answer.code == 1
    assert f"The breaker of task {path!r} is open since" in answer.out

    assert once("resume", "breaker", "call_partner", *HERE).code == 0
    answer = once("resume", "breaker", "call_partner", *HERE)
    assert answer.err == f"Breaker {path!r} was not open.\n"
