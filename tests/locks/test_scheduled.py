"""The functions of a scheduler whose pods all run every schedule."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest
from django.db import transaction

from django_once.errors import InvalidOption, LockLost
from django_once.locks import (
    acquire_task_lock,
    process_id,
    release_task_lock,
    run_scheduled_job,
)
from django_once.models import Lock
from django_once.testing import moved_clock
from tests.jobs import in_threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


@dataclass
class Record:
    name: str = "daily-digest"
    id: str = "abc-123"


def test_the_basic_lock_mechanism():
    # Simulate multiple pods trying to run same task
    process1 = "pod1-123-abc"
    process2 = "pod2-456-def"
    task = "test-task:123"

    # First pod acquires lock
    assert acquire_task_lock(process1, task) == True  # noqa: E712

    # Second pod fails to acquire
    assert acquire_task_lock(process2, task) == False  # noqa: E712

    # Release and second pod can acquire
    release_task_lock(process1, task)
    assert acquire_task_lock(process2, task) == True  # noqa: E712


def test_the_key_names_task_and_id():
    acquire_task_lock("pod1", "daily-digest:abc-123")

    assert Lock.objects.get().name == "task_lock:daily-digest:abc-123"


def test_a_process_id_names_host_process_and_draw():
    host, pid, drawn = process_id().rsplit("-", 2)

    assert host
    assert pid.isdigit()
    assert len(drawn) == 8
    assert process_id() != process_id()


def test_a_lock_whose_timeout_is_over_is_taken():
    acquire_task_lock("pod1", "digest:1", timeout_seconds=60)

    with moved_clock("61s"):
        assert acquire_task_lock("pod2", "digest:1")
        with pytest.raises(LockLost, match="pod2.*holds"):
            release_task_lock("pod1", "digest:1")
        assert not acquire_task_lock("pod3", "digest:1")


def test_a_stranger_releases_nothing_and_is_told():
    acquire_task_lock("pod1", "digest:1")

    with pytest.raises(LockLost, match="'stranger' does not hold"):
        release_task_lock("stranger", "digest:1")
    with pytest.raises(LockLost, match="nobody ever took it"):
        release_task_lock("pod1", "digest:2")

    assert not acquire_task_lock("pod2", "digest:1")


def test_releasing_twice_does_no_harm():
    acquire_task_lock("pod1", "digest:1")

    release_task_lock("pod1", "digest:1")
    release_task_lock("pod1", "digest:1")


def test_a_second_acquire_by_the_same_process_is_refused():
    assert acquire_task_lock("pod1", "digest:1")
    assert not acquire_task_lock("pod1", "digest:1")


def test_of_many_pods_one_acquires():
    won = in_threads(*[lambda n=n: acquire_task_lock(f"pod{n}", "digest:1") for n in range(8)])

    assert sum(won) == 1


def test_a_rollback_does_not_undo_a_release():
    acquire_task_lock("pod1", "digest:1")
    if transaction.get_connection().vendor == "sqlite":
        pytest.skip("SQLite refuses it inside a transaction.")

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        release_task_lock("pod1", "digest:1")
        raise ZeroDivisionError

    assert acquire_task_lock("pod2", "digest:1")


def test_the_log_says_who_runs_and_who_skips(caplog):
    caplog.set_level(logging.DEBUG, logger="django_once")
    task = "daily-digest:abc-123"

    acquire_task_lock("pod1", task)
    acquire_task_lock("pod2", task)
    release_task_lock("pod1", task)

    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", f"Acquired lock for task: {task}"),
        ("DEBUG", f"Skipping {task} - already running on another pod"),
        ("DEBUG", f"Released lock for task: {task}"),
    ]


def test_a_scheduled_job_runs_where_nobody_else_runs_it(caplog):
    caplog.set_level(logging.INFO, logger="django_once")
    ran = []

    assert run_scheduled_job(Record(), ran.append)

    assert ran == [Record()]
    assert "Running scheduled task: daily-digest" in caplog.text
    assert acquire_task_lock("pod2", "daily-digest:abc-123")
    assert not run_scheduled_job(Record(), ran.append)
    assert len(ran) == 1


def test_a_scheduled_job_that_raises_gives_its_lock_back():
    def fails(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_scheduled_job(Record(), fails)

    assert acquire_task_lock("pod2", "daily-digest:abc-123")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (("", "task:1"), "holder"),
        (("pod" * 100, "task:1"), "holder"),
        (("pod1", ""), "name"),
        (("pod1", "t" * 250), "name"),
        (("pod1", "task:1", 0), "timeout_seconds"),
        (("pod1", "task:1", "soon"), "timeout_seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        acquire_task_lock(*said)
