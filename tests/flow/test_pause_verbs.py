"""`once pause` and `once resume`: what people and programs see of a pause."""

from __future__ import annotations

import pytest

from django_once.models import Job, Pause
from django_once.testing import run_jobs
from tests.app.tasks import add
from tests.management.shell import once

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def test_a_queue_is_paused_with_a_reason_and_goes_on():
    add.enqueue(1)

    answer = once("pause", "queue", "default", "--reason", "moving", "--backend", "default")

    assert (answer.code, answer.out) == (
        0, "Paused queue 'default'. What runs goes on to its end.\n",
    )  # fmt: skip
    assert run_jobs() == 0
    (row,) = once("pause", "--json").json["pauses"]
    assert (row["kind"], row["name"], row["reason"], row["until"]) == (
        "queue", "default", "moving", None,
    )  # fmt: skip
    assert "@" in row["paused_by"]
    assert once("resume", "queue", "default").out == "Resumed queue 'default'.\n"
    assert run_jobs() == 1


def test_a_task_may_be_named_by_the_end_of_its_path():
    add.enqueue(1)

    once("pause", "task", "tasks.add", "--until", "2h", "--backend", "default")

    pause = Pause.objects.get()
    assert (pause.name, pause.until > pause.paused_at) == (add.module_path, True)
    assert run_jobs() == 0
    assert once("resume", "task", add.module_path).code == 0
    assert not Job.objects.filter(blocked_by="paused").exists()


def test_a_list_for_people_names_who_and_until_when():
    assert once("pause").out == "Nothing is paused.\n"
    once("pause", "key", "tenant:7", "--until", "2090-01-31T18:00", "--backend", "default")

    header, line, *_ = once("pause").lines

    assert header.split()[:3] == ["KIND", "NAME", "BACKEND"]
    assert line.split()[:3] == ["key", "tenant:7", "default"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pause", "queue"), "Say which queue"),
        (("pause", "queue", "x", "--until", "soon"), "must be a timedelta"),
        (("pause", "planet", "x"), "invalid choice"),
        (("pause", "queue", "x", "--reason", "x" * 300), "at most 255"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(words, sentence):
    answer = once(*words)

    assert answer.code != 0
    assert sentence in answer.err
    assert not Pause.objects.exists()


def test_resuming_what_is_not_paused_says_so():
    answer = once("resume", "queue", "default")

    assert (answer.code, answer.err) == (1, "Queue 'default' was not paused.\n")
