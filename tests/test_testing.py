"""`django_once.testing`: jobs run inside a test, time passes at once, and nothing outlives it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.db import connections, transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase

from django_once import clock, compat, task
from django_once.compat import TaskResultStatus
from django_once.errors import InvalidOption
from django_once.models import Job, Worker
from django_once.testing import (
    assert_enqueued,
    assert_not_enqueued,
    enqueued_jobs,
    moved_clock,
    run_jobs,
)
from tests.app import tasks
from tests.app.models import Note

ROOT = Path(__file__).parent.parent


@task
def raise_after_commit() -> None:
    transaction.on_commit(lambda: 1 / 0)


@task
def register_after_commit(text: str) -> None:
    transaction.on_commit(lambda: transaction.on_commit(lambda: Note.objects.create(text=text)))


def notes() -> list[str]:
    return list(Note.objects.values_list("text", flat=True).order_by("pk"))


@pytest.mark.engine
@pytest.mark.django_db
class TestRunJobs:
    """In the transaction of a test."""

    def test_what_is_due_runs_and_is_counted(self):
        tasks.note.enqueue("a")
        tasks.note.enqueue("b")

        assert run_jobs() == 2
        assert run_jobs() == 0
        assert notes() == ["a", "b"]

    def test_the_most_urgent_runs_first(self):
        for priority in (0, 50, -50, 100):
            tasks.note.using(priority=priority).enqueue(str(priority))

        run_jobs()

        assert notes() == ["100", "50", "0", "-50"]

    def test_what_a_body_enqueues_runs_too(self):
        tasks.enqueue_another.enqueue(1)

        assert run_jobs() == 2

    def test_no_more_run_than_were_asked_for(self):
        tasks.note.enqueue_many([((str(number),), {}) for number in range(5)])

        assert [run_jobs(max_jobs=2), run_jobs(max_jobs=0), run_jobs()] == [2, 0, 3]

    @pytest.mark.parametrize("queues", ["mail", ["mail"], "mail,low", ("low", "mail")])
    def test_only_the_named_queues_are_served(self, queues):
        tasks.note.enqueue("default")
        tasks.note.using(queue_name="mail").enqueue("mail")

        assert run_jobs(queues=queues) == 1
        assert notes() == ["mail"]

    def test_the_result_says_which_worker_it_was(self):
        result = tasks.add.enqueue(1)

        run_jobs(worker_id="ann")
        result.refresh()

        assert result.worker_ids == ["ann"]

    @pytest.mark.parametrize("worker_id", ["", "x" * 65])
    def test_a_worker_id_that_no_column_holds_is_refused(self, worker_id):
        with pytest.raises(ValueError, match="worker_id has 1 to 64 characters"):
            run_jobs(worker_id=worker_id)

    def test_a_body_that_raises_loses_what_it_wrote_and_no_more(self):
        Note.objects.create(text="mine")
        result = tasks.note_and_fail.enqueue("lost")
        tasks.note.enqueue("other")

        run_jobs()
        result.refresh()

        assert result.status == TaskResultStatus.FAILED
        assert notes() == ["mine", "other"]

    def test_what_a_body_wants_after_commit_happens_after_it(self):
        tasks.note_after_commit.enqueue("after")
        # The enqueue's own, which wakes workers where the database can.
        of_the_test = list(connections["default"].run_on_commit)

        run_jobs()

        assert notes() == ["after"]
        assert connections["default"].run_on_commit == of_the_test

    def test_callbacks_of_the_test_itself_are_left_alone(self):
        transaction.on_commit(lambda: Note.objects.create(text="of the test"))
        tasks.note_after_commit.enqueue("of the body")
        mine = list(connections["default"].run_on_commit)

        run_jobs()

        assert notes() == ["of the body"]
        assert connections["default"].run_on_commit == mine

    def test_a_callback_may_register_another(self):
        register_after_commit.enqueue("nested")

        run_jobs()

        assert notes() == ["nested"]

    def test_a_callback_that_raises_reaches_the_test_and_leaves_no_job_behind(self):
        result = raise_after_commit.enqueue()

        with pytest.raises(ZeroDivisionError):
            run_jobs()

        result.refresh()
        assert result.is_finished

    def test_an_async_body_runs(self):
        result = tasks.add_later.enqueue(1, 2)

        run_jobs()
        result.refresh()

        assert result.return_value == 3

    @pytest.mark.parametrize("body", [tasks.note_once, tasks.fail_once, tasks.note])
    def test_every_delivery_runs(self, body):
        result = body.enqueue() if body is tasks.fail_once else body.enqueue("x")

        assert run_jobs() == 1
        result.refresh()
        assert result.is_finished

    def test_the_connection_is_left_as_it_was(self):
        connection = connections["default"]
        before = (connection.connection, list(connection.savepoint_ids), connection.in_atomic_block)
        tasks.note.enqueue("a")
        tasks.note_and_fail.enqueue("b")

        run_jobs()

        after = (connection.connection, list(connection.savepoint_ids), connection.in_atomic_block)
        assert after == before
        assert not connection.needs_rollback

    def test_the_worker_of_a_test_has_ended_with_it(self):
        run_jobs()

        assert not Worker.objects.filter(stopped_at=None).exists()

    def test_a_backend_of_others_is_refused_with_its_class(self):
        with pytest.raises(TypeError, match=r"TASKS\['dummy'\] is .*DummyBackend, which keeps no"):
            run_jobs("dummy")
        with pytest.raises(compat.InvalidTaskBackend):
            run_jobs("nowhere")

    def test_wrong_settings_are_refused(self, settings):
        ours = settings.TASKS["default"]
        settings.TASKS = {"default": {**ours, "OPTIONS": {"LEASES": "1s"}}}

        with pytest.raises(InvalidOption, match="Did you mean 'LEASE'?"):
            run_jobs()


@pytest.mark.engine
@pytest.mark.django_db(databases=["default", "other"])
def test_jobs_of_another_database_run_there():
    result = tasks.add_elsewhere.enqueue(1, 2)

    assert (run_jobs(), run_jobs("other")) == (0, 1)
    result.refresh()
    assert result.return_value == 3


@pytest.mark.engine
@pytest.mark.django_db
class TestClock:
    """Time that passes at once."""

    def test_what_waits_for_its_time_runs_when_the_clock_has_moved(self):
        tasks.add.using(run_after=timedelta(hours=1)).enqueue(1)

        assert run_jobs() == 0
        with moved_clock("59m") as moved:
            assert run_jobs() == 0
            moved.advance("2m")
            assert run_jobs() == 1
            assert moved.moved == timedelta(minutes=61)
        assert clock.offset() == timedelta(0)

    def test_a_retry_waits_for_its_time(self):
        tasks.fail_again.enqueue()

        assert (run_jobs(), run_jobs()) == (1, 0)
        with moved_clock("10s"):
            assert run_jobs() == 1

    def test_clocks_may_be_moved_within_each_other(self):
        with moved_clock("1h"):
            with moved_clock("1h"):
                assert clock.offset() == timedelta(hours=2)
            assert clock.offset() == timedelta(hours=1)

    def test_the_clock_goes_back_when_the_block_raises(self):
        with pytest.raises(ZeroDivisionError), moved_clock("1h"):
            raise ZeroDivisionError

        assert clock.offset() == timedelta(0)

    @pytest.mark.parametrize("by", ["-1h", -1, "soon", None])
    def test_time_does_not_pass_backwards(self, by):
        with pytest.raises(InvalidOption, match=r"^Clock\.advance must"):
            moved_clock(by).__enter__()

        assert clock.offset() == timedelta(0)


@pytest.mark.engine
@pytest.mark.django_db
class TestEnqueued:
    """What waits, and what should."""

    def test_jobs_that_wait_are_listed_from_the_oldest_on(self):
        tasks.add.enqueue(1)
        tasks.note.enqueue("a")
        tasks.add.using(run_after=timedelta(days=1)).enqueue(2)

        assert [job.args for job in enqueued_jobs()] == [[1], ["a"], [2]]
        assert [job.args for job in enqueued_jobs(tasks.add)] == [[1], [2]]

    def test_what_has_run_waits_no_more(self):
        tasks.add.enqueue(1)
        run_jobs()

        assert enqueued_jobs() == []
        assert_not_enqueued(tasks.add)

    def test_a_job_is_known_by_its_arguments_however_they_were_given(self):
        tasks.add.enqueue(1, b=2)

        assert_enqueued(tasks.add)
        assert_enqueued(tasks.add, 1, 2)
        assert_enqueued(tasks.add, a=1, b=2)
        assert_enqueued(tasks.add, 1, b=mock.ANY)
        assert_not_enqueued(tasks.add, 1)
        assert_not_enqueued(tasks.add, 1, 3)
        assert_not_enqueued(tasks.note)

    def test_a_tuple_is_the_list_that_a_job_keeps(self):
        tasks.echo.enqueue((1, 2), key={"a": (3,)})

        assert_enqueued(tasks.echo, (1, 2), key={"a": (3,)})

    def test_the_context_is_no_argument(self):
        tasks.tell.enqueue()

        assert_enqueued(tasks.tell)

    def test_a_task_may_have_arguments_of_any_name(self):
        tasks.echo.enqueue(task="x", alias="y", count=3, args=[1])

        assert_enqueued(tasks.echo, task="x", alias="y", count=3, args=[1])

    def test_a_missing_job_is_told_with_those_that_wait(self):
        tasks.add.enqueue(1, b=2)

        with pytest.raises(AssertionError) as raised:
            assert_enqueued(tasks.add, 1, 3)

        assert str(raised.value) == (
            "No job of tests.app.tasks.add waits with (1, 3). Waiting: (1, b=2)."
        )

    def test_that_nothing_waits_is_told(self):
        with pytest.raises(AssertionError, match=r"waits\. None waits at all\.$"):
            assert_enqueued(tasks.add)

    def test_many_jobs_are_told_shortly(self):
        tasks.add.enqueue_many([((number,), {}) for number in range(12)])

        with pytest.raises(AssertionError, match=r"\(8\), \(9\) and 2 more\.$"):
            assert_enqueued(tasks.add, 99)

    def test_a_job_that_should_not_wait_is_told(self):
        tasks.add.enqueue(1)

        with pytest.raises(AssertionError, match=r"^1 of the jobs of tests\.app\.tasks\.add wait"):
            assert_not_enqueued(tasks.add, 1)

    def test_arguments_that_never_fit_are_a_mistake_of_the_test(self):
        tasks.add.enqueue(1)

        with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
            assert_enqueued(tasks.add, 1, c=2)


@pytest.mark.engine
@pytest.mark.django_db(databases=["default", "other"])
def test_a_task_is_looked_for_at_its_own_backend():
    tasks.add_elsewhere.enqueue(1, 2)

    assert_enqueued(tasks.add_elsewhere, 1, 2)
    assert_not_enqueued(tasks.add_elsewhere.using(backend="default"))
    assert len(enqueued_jobs(alias="other")) == 1
    assert enqueued_jobs() == []


# The test cases of Django


@pytest.mark.engine
class TestsOfDjango(TestCase):
    """A plain TestCase, twice the same: what the one left behind the other would see."""

    def leaves_nothing(self):
        assert (Job.objects.count(), Worker.objects.count(), notes()) == (0, 0, [])
        assert clock.offset() == timedelta(0)
        with moved_clock("1h"):
            tasks.note.enqueue("a")
            tasks.fail_again.enqueue()
            assert run_jobs() == 2
        assert notes() == ["a"]

    def test_once(self):
        self.leaves_nothing()

    def test_and_again(self):
        self.leaves_nothing()

    def test_callbacks_after_commit_are_captured_as_ever(self):
        with self.captureOnCommitCallbacks(execute=True):
            transaction.on_commit(lambda: tasks.note.enqueue("later"))
            assert enqueued_jobs() == []

        assert run_jobs() == 1

    async def test_an_async_test_enqueues_and_looks(self):
        from asgiref.sync import sync_to_async

        result = await tasks.add.aenqueue(1, 2)
        await sync_to_async(run_jobs)()
        await result.arefresh()

        assert result.return_value == 3


@pytest.mark.engine
class TestsWithTransactions(TransactionTestCase):
    """A TransactionTestCase: every attempt commits, as in production."""

    def test_jobs_run_without_a_transaction_around_them(self):
        tasks.note.enqueue("a")
        tasks.note_after_commit.enqueue("b")
        failed = tasks.note_and_fail.enqueue("kept, for its own commit")

        assert run_jobs() == 3

        failed.refresh()
        assert notes() == ["a", "b", "kept, for its own commit"]
        assert failed.status == TaskResultStatus.FAILED
        assert not connections["default"].in_atomic_block


class TestsWithoutDatabase(SimpleTestCase):
    """A SimpleTestCase: whatever asks the database is refused, by Django, with a sentence."""

    def test_running_jobs_is_refused(self):
        with self.assertRaisesMessage(AssertionError, "not allowed in SimpleTestCase subclasses"):
            run_jobs()

    def test_enqueueing_is_refused(self):
        with self.assertRaisesMessage(AssertionError, "not allowed in SimpleTestCase subclasses"):
            tasks.add.enqueue(1)

    def test_looking_is_refused(self):
        with self.assertRaisesMessage(AssertionError, "not allowed in SimpleTestCase subclasses"):
            enqueued_jobs()

    def test_a_body_is_called_without_any_of_it(self):
        assert tasks.add.call(1, 2) == 3
        assert asyncio.run(tasks.add_later.acall(1, 2)) == 3


# The plugin of pytest


def test_importing_the_plugin_loads_no_settings_and_no_model():
    program = """
        import sys
        import django_once.pytest_plugin
        loaded = [name for name in sys.modules if name.startswith(("django.", "django_once."))]
        assert loaded == ["django_once.pytest_plugin"], loaded
    """

    done = python("-c", textwrap.dedent(program))

    assert done.returncode == 0, done.stderr


def test_its_fixtures_are_there_for_whoever_names_them(tmp_path):
    test = """
        from datetime import timedelta
        from tests.app import tasks

        def test_it(run_jobs, once_clock, enqueued_jobs):
            tasks.add.using(run_after=timedelta(hours=1)).enqueue(1)
            assert len(enqueued_jobs(tasks.add)) == 1
            assert run_jobs() == 0
            once_clock.advance("1h")
            assert run_jobs() == 1

        def test_the_clock_is_back(once_clock):
            from django_once import clock
            assert clock.offset() == timedelta(0)

        def test_inert():
            pass
    """
    (tmp_path / "test_a_user.py").write_text(textwrap.dedent(test))

    done = python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "django_once.pytest_plugin"),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path)),
        ONCE_TEST_DATABASE_URL=f"sqlite://{tmp_path}/once.sqlite3",
        ONCE_TEST_TOKEN="plugin",
    )

    assert "3 passed" in done.stdout, done.stdout + done.stderr


def python(*arguments: str, **more: str):
    import os

    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, **more}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=ROOT
    )
