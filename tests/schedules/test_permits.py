"""Permits: on a foreign backend a scheduled run is delivered however often, and made once."""

from __future__ import annotations

import threading
import time

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection, connections

from django_once.compat import task_backends
from django_once.errors import BrokenTransaction
from django_once.models import Schedule, TaskExecution
from django_once.permits import PERMIT
from django_once.scheduling import dispatch
from django_once.testing import moved_clock, run_jobs
from tests.app.models import Note
from tests.jobs import in_threads
from tests.schedules import broker, tasks
from tests.schedules.broker import deliver, deliveries
from tests.schedules.rows import DATABASE, a_schedule, again, fire_all, records

pytestmark = [pytest.mark.engine, pytest.mark.races, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def empty_broker():
    deliveries.clear()
    broker.refuses.clear()
    tasks.is_inside.clear()
    tasks.may_end.clear()


def fired(task=tasks.bill, text="paid", **said):
    schedule = a_schedule(
        f"{task.name}:{text}", task=task.module_path, args=f'["{text}"]', backend=task.backend,
        **said,
    )  # fmt: skip
    fire_all()
    return schedule


def notes():
    return list(Note.objects.values_list("text", flat=True))


def permit():
    return TaskExecution.objects.get()


def test_a_permit_is_pending_until_the_body_has_committed():
    schedule = fired()
    assert (records(schedule), permit().dispatch_count) == ([("PENDING", "")], 1)
    assert permit().dispatched_at is not None

    assert deliver() == "paid"

    assert (records(schedule), notes()) == ([("COMPLETED", "")], ["paid"])
    assert again(schedule).succeeded_at is not None


@pytest.mark.parametrize("task", [tasks.bill, tasks.bill_from_above, tasks.bill_later])
def test_a_second_delivery_does_nothing_and_says_so(task, caplog):
    fired(task)

    answers = [deliver(), deliver()]

    assert answers == ["paid", None]
    assert notes() == ["paid"]
    assert "permit.spent" in caplog.text


def test_the_body_never_sees_the_permit():
    fired()

    ((_, args, kwargs),) = deliveries
    assert (args, set(kwargs)) == (["paid"], {PERMIT})
    assert deliver() == "paid"


@pytest.mark.parametrize("permit", ["no id", "00000000-0000-0000-0000-000000000000"])
def test_a_permit_that_is_unknown_runs_nothing(permit):
    assert tasks.bill.call("paid", **{PERMIT: permit}) is None
    assert notes() == []


def test_calls_and_enqueues_by_hand_need_no_permit():
    tasks.bill.call("called")
    tasks.bill.enqueue("enqueued")
    deliver()
    async_to_sync(tasks.bill_later.acall)("awaited")

    assert sorted(notes()) == ["awaited", "called", "enqueued"]


def test_a_body_that_fails_leaves_nothing_and_its_permit_pending():
    schedule = fired(tasks.bill_and_fail)

    with pytest.raises(ValueError, match="paid"):
        deliver()

    assert (records(schedule), notes()) == ([("PENDING", "")], [])


@pytest.mark.skipif(connection.vendor != "postgresql", reason="Others go on after an error.")
def test_a_body_that_hides_an_error_of_the_database_spends_no_permit():
    schedule = fired(tasks.bill_and_hide_an_error)

    with pytest.raises(DatabaseError):
        deliver()

    assert (records(schedule), notes()) == ([("PENDING", "")], [])


def test_a_body_that_rolls_back_spends_no_permit():
    schedule = fired(tasks.bill_and_roll_back)

    with pytest.raises(BrokenTransaction, match="swallowed a database error or ended"):
        deliver()

    assert (records(schedule), notes()) == ([("PENDING", "")], [])


@pytest.mark.skipif(connection.vendor == "sqlite", reason="Any writer holds the lock of SQLite.")
def test_seven_of_eight_deliveries_at_once_are_free_while_the_body_still_runs():
    schedule = fired(tasks.bill_slowly)
    answers, seconds = [], []

    def work():
        began = time.perf_counter()
        answer = deliver()
        if not tasks.may_end.is_set():
            seconds.append(time.perf_counter() - began)
        answers.append(answer)
        connections.close_all()

    first = threading.Thread(target=work)
    first.start()
    assert tasks.is_inside.wait(30)
    others = [threading.Thread(target=work) for _ in range(7)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join(30)
    were_free = list(answers)
    tasks.may_end.set()
    first.join(30)

    assert were_free == [None] * 7
    assert max(seconds) < 2
    assert (answers[-1], notes(), records(schedule)) == ("paid", ["paid"], [("COMPLETED", "")])


@pytest.mark.skipif(connection.vendor == "sqlite", reason="Any writer holds the lock of SQLite.")
def test_a_scheduler_waits_for_no_body_that_holds_its_permit():
    fired(tasks.bill_slowly)
    worker = threading.Thread(target=lambda: (deliver(), connections.close_all()))
    worker.start()
    assert tasks.is_inside.wait(30)

    with moved_clock("10m"):
        offered = dispatch.dispatch_again(DATABASE)
        stamped = dispatch.dispatch(DATABASE, permit().pk)
    tasks.may_end.set()
    worker.join(30)

    assert (offered, stamped) == (0, True)
    assert (notes(), permit().status) == (["paid"], "COMPLETED")


def test_eight_deliveries_that_begin_together_run_one_body():
    fired()

    answers = in_threads(*[deliver] * 8)

    assert sorted(filter(None, answers)) == ["paid"]
    assert notes() == ["paid"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="It names its level in SQL.")
def test_under_repeatable_read_the_second_skips_as_well():
    fired()

    def under_repeatable_read():
        with connections[DATABASE].cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'repeatable read'")
        return deliver()

    answers = in_threads(*[under_repeatable_read] * 6)

    assert sorted(filter(None, answers)) == ["paid"]
    assert notes() == ["paid"]


def test_a_broker_that_refuses_one_of_three_gets_the_others_and_that_one_later():
    broker.refuses.append("two")
    schedules = [fired(text=text) for text in ("one", "two", "three")]
    assert [args for _, args, _ in deliveries] == [["one"], ["three"]]

    broker.refuses.clear()
    assert dispatch.dispatch_again(DATABASE) == 0
    with moved_clock("61s"):
        assert dispatch.dispatch_again(DATABASE) == 1

    assert [args for _, args, _ in deliveries] == [["one"], ["three"], ["two"]]
    for number in range(3):
        deliver(number)
    assert [records(one) for one in schedules] == [[("COMPLETED", "")]] * 3


def test_a_dispatch_that_never_happened_is_made_up_for(monkeypatch):
    with monkeypatch.context() as patch:
        # The process dies between the commit and the hand-over.
        patch.setattr(dispatch, "_hand_over", lambda *_: None)
        fired()
    assert deliveries == []

    with moved_clock("59s"):
        assert dispatch.dispatch_again(DATABASE) == 0
    with moved_clock("61s"):
        assert dispatch.dispatch_again(DATABASE) == 1

    assert deliver() == "paid"


def test_what_stays_away_is_sent_three_times_in_all_and_then_kept_as_evidence():
    schedule = fired()

    for minutes in range(5, 120, 3):
        with moved_clock(f"{minutes}m"):
            dispatch.dispatch_again(DATABASE)

    assert len(deliveries) == 3
    assert records(schedule) == [("PENDING", "exhausted")]
    assert deliver(2) == "paid"
    assert records(schedule) == [("COMPLETED", "")]


def test_a_backlog_is_offered_in_bounded_lots_and_not_at_every_look(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_hand_over", lambda *_: None)
        for number in range(150):
            a_schedule(f"{number}", task=tasks.bill.module_path, args='["x"]', backend="broker")
        fire_all()

    with moved_clock("61s"):
        offered = [dispatch.dispatch_again(DATABASE) for _ in range(5)]

    assert offered == [100, 50, 0, 0, 0]
    assert len(deliveries) == 150


def test_two_schedulers_offer_a_lapsed_permit_once(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_hand_over", lambda *_: None)
        fired()

    with moved_clock("61s"):
        offered = in_threads(*[lambda: dispatch.dispatch_again(DATABASE)] * 4)

    assert sorted(offered) == [0, 0, 0, 1]
    assert len(deliveries) == 1


def test_a_task_without_the_promise_is_dispatched_without_a_permit():
    schedule = fired(tasks.tell)

    assert records(schedule) == [("COMPLETED", "")]
    assert [kwargs for _, _, kwargs in deliveries] == [{}]


def test_the_immediate_backend_runs_under_its_permit():
    schedule = fired(tasks.bill_at_once)

    assert (records(schedule), notes()) == ([("COMPLETED", "")], ["paid"])


def test_the_dummy_backend_takes_the_run_and_its_permit_stays_pending():
    schedule = fired(tasks.bill_never)

    (result,) = task_backends["dummy"].results[-1:]
    assert result.kwargs == {PERMIT: str(permit().pk)}
    assert records(schedule) == [("PENDING", "")]


def test_a_permit_outlives_its_schedule():
    fired()
    Schedule.objects.all().delete()

    assert deliver() == "paid"
    assert permit().status == "COMPLETED"


def test_an_open_permit_counts_as_a_run_and_an_exhausted_one_does_not():
    schedule = fired()
    with moved_clock("1m"):
        fire_all()
    assert records(schedule) == [("PENDING", ""), ("SKIPPED", "overlap")]
    TaskExecution.objects.filter(status="PENDING").update(reason="exhausted")

    with moved_clock("2m"):
        fire_all()

    assert records(schedule)[-1] == ("PENDING", "")


def test_on_our_own_backend_no_permit_travels():
    schedule = a_schedule(
        task=tasks.bill.module_path, args='["ours"]', backend="default", queue="default"
    )
    fire_all()

    assert run_jobs() == 1

    assert notes() == ["ours"]
    assert list(schedule.executions.values_list("result", flat=True)) == [""]
