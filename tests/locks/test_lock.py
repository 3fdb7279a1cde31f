"""The lock as users take it: around a block, around a function, sync and async."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.transaction import TransactionManagementError

from django_once.errors import InvalidOption, LockHeld, LockLost
from django_once.locks import lock
from django_once.models import Lock
from django_once.models.lock import end_by_force, holders_of
from django_once.sql.lines import close_idle, line
from django_once.testing import moved_clock
from tests.app.models import Note
from tests.jobs import in_threads

DATABASE = "default"
engine = [pytest.mark.django_db(transaction=True), pytest.mark.engine]
pytestmark = engine


def row(name="export"):
    return Lock.objects.get(pk=name)


def end(name="export"):
    """Take a lock from its holder, as a person would."""
    with line(DATABASE) as own:
        assert end_by_force(own, name, "eve", "for a test")
    close_idle(DATABASE, 0.0)


def test_a_block_holds_the_lock_and_gives_it_back():
    with lock("export", lease="1m") as held:
        assert held.fence == 1
        assert row().released_at is None
        held.check()

    assert row().released_at is not None
    with pytest.raises(LockLost, match="given back before"):
        held.check()


def test_a_body_that_raises_gives_the_lock_back():
    with pytest.raises(ZeroDivisionError), lock("export"):
        raise ZeroDivisionError

    assert row().released_at is not None


def test_who_meets_a_held_lock_is_told_by_whom_and_until_when():
    with lock("export") as held:
        with pytest.raises(LockHeld) as caught:
            lock("export").acquire()

    assert caught.value.holder == held.holder
    assert held.holder in str(caught.value)
    assert f"{caught.value.until:%H:%M:%S}" in str(caught.value)
    assert "not re-entrant" in str(caught.value)


def test_a_surrounding_rollback_undoes_neither_taking_nor_release():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite refuses a lock inside a transaction.")
    before = lock("before").acquire()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Note.objects.create(text="gone")
        inside = lock("inside").acquire()
        before.release()
        raise ZeroDivisionError

    assert row("before").released_at is not None
    assert row("inside").released_at is None
    assert not Note.objects.exists()
    inside.release()


def test_a_broken_transaction_does_not_keep_a_lock_from_being_released():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite refuses a lock inside a transaction.")
    with transaction.atomic():
        with lock("export"):
            transaction.set_rollback(True)

    assert row().released_at is not None


def test_a_lock_inside_a_transaction_is_seen_by_others_at_once():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite refuses a lock inside a transaction.")

    def ask():
        with pytest.raises(LockHeld):
            lock("export").acquire()
        return True

    with transaction.atomic(), lock("export"):
        assert in_threads(ask) == [True]


def test_sqlite_refuses_a_lock_inside_a_transaction_with_a_sentence():
    if connection.vendor != "sqlite":
        pytest.skip("Others write beside a transaction.")

    with transaction.atomic(), pytest.raises(TransactionManagementError, match="one writer"):
        lock("export").acquire()


def test_the_lock_is_renewed_beside_a_body_that_never_looks_up():
    with lock("export", lease="1s") as held:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            pass
        assert not held.lost.is_set()
        held.check()

    assert row().fence == 1
    assert holders_of(row())[0]["end"] == "released"


def test_a_lock_that_a_person_took_away_is_found_lost():
    with pytest.raises(LockLost, match="export"):
        with lock("export", lease="1s") as held:
            end()
            assert held.lost.wait(5)
            with pytest.raises(LockLost):
                held.check()


def test_a_lock_that_was_lost_unnoticed_is_told_at_the_exit():
    with pytest.raises(LockLost):
        with lock("export", lease="1h"):
            end()


def test_the_exception_of_the_body_is_worth_more_than_the_loss():
    with pytest.raises(ZeroDivisionError) as caught:
        with lock("export", lease="1h"):
            end()
            raise ZeroDivisionError

    assert "lost" in " ".join(caught.value.__notes__)


def test_a_lease_that_cannot_be_renewed_is_trusted_no_longer_than_it_lasts():
    with lock("export", lease="1s") as held:
        # The renewing thread has it no more: as when the database is away.
        from django_once.locks.renewal import renewal_of

        renewal_of(held.place).forget(held)
        began = time.monotonic()

        assert held.lost.wait(5)

        assert time.monotonic() - began < 1.0
        with pytest.raises(LockHeld):
            lock("export").acquire()
        held.lost.clear()
        held.lost.trusted_until = float("inf")


def test_waiting_gets_the_lock_when_it_is_released():
    first = lock("export").acquire()
    answers = []

    def wait():
        with lock("export", wait="20s") as held:
            answers.append((held.fence, time.monotonic()))
        connections.close_all()

    waiter = threading.Thread(target=wait)
    waiter.start()
    if connection.vendor == "postgresql":
        while not row().is_wanted:
            time.sleep(0.01)
    else:
        time.sleep(0.3)
    released = time.monotonic()
    first.release()
    waiter.join(20)

    ((fence, got),) = answers
    assert fence == 2
    assert got - released < (0.2 if connection.vendor == "postgresql" else 1.0)


def test_waiting_gets_a_dead_holders_lock_when_its_lease_is_over():
    dead = lock("export", lease="1s").acquire()
    from django_once.locks.renewal import renewal_of

    renewal_of(dead.place).forget(dead)
    began = time.monotonic()

    with lock("export", wait="10s") as held:
        took = time.monotonic() - began

    assert held.fence == 2
    assert took < 2.0


def test_waiting_ends_and_says_who_has_it():
    with lock("export") as held:
        began = time.monotonic()
        with pytest.raises(LockHeld, match=held.holder):
            lock("export", wait=0.3).acquire()

    assert 0.3 <= time.monotonic() - began < 3


def test_a_decorated_function_takes_the_lock_for_each_call():
    @lock("export:{report_id}")
    def export(report_id, *, dry=False):
        return row(f"export:{report_id}").released_at, dry

    assert export(7) == (None, False)
    assert export(report_id=7, dry=True) == (None, True)
    assert row("export:7").fence == 2


def test_a_decorated_coroutine_takes_the_lock_for_each_call():
    @lock("export")
    async def export():
        await asyncio.sleep(0)
        return "done"

    assert asyncio.run(export()) == "done"
    assert row().released_at is not None


def test_a_generator_is_refused():
    with pytest.raises(TypeError, match="generator"):

        @lock("export")
        def rows():
            yield 1


def test_many_coroutines_wait_without_keeping_the_holder_from_releasing():
    async def work(seen):
        async with lock("export", wait="30s") as held:
            seen.append(held.fence)

    async def main():
        seen = []
        await asyncio.gather(*(work(seen) for _ in range(12)))
        return seen

    assert sorted(asyncio.run(main())) == list(range(1, 13))


def test_a_cancelled_waiter_leaves_no_lock_behind():
    async def main():
        async with lock("export"):
            waiting = asyncio.ensure_future(lock("export", wait="30s").__aenter__())
            await asyncio.sleep(0.3)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await asyncio.sleep(0)

    asyncio.run(main())
    # It must not ask in the midst of another test.
    for thread in threading.enumerate():
        if thread.name.startswith("once-lock_"):
            thread.join(60)

    with lock("export", wait="10s"):
        pass


def lose_answers(times):
    """Let the next statements on our own line arrive, and their answers be lost."""
    lost = []

    def lose(execute, sql, parameters, many, context):
        answer = execute(sql, parameters, many, context)
        if "once_lock" in sql and len(lost) < times:
            lost.append(sql)
            raise OperationalError("the connection broke")
        return answer

    with line(DATABASE) as own:
        own.ensure_connection()
        own.execute_wrappers.append(lose)
        if getattr(own, "once_session", None) is not None:
            own.once_session = Lossy(own.once_session, lose)
    return lost


class Lossy:
    """A prepared session whose answers go through a function that may lose them."""

    def __init__(self, session, lose):
        self.session, self.lose = session, lose

    def rows(self, sql, parameters):
        return self.lose(lambda *said: self.session.rows(*said[:2]), sql, parameters, False, {})

    def count(self, sql, parameters):
        return self.lose(
            lambda sql, said, *_: self.session.count(sql, said), sql, parameters, 0, {}
        )


def test_a_lost_answer_is_asked_for_and_gives_the_same_lease():
    lost = lose_answers(1)

    with lock("export") as held:
        assert held.fence == 1

    assert len(lost) == 1
    assert [one["fence"] for one in holders_of(row())] == [1]


def test_a_lost_answer_to_the_release_is_no_loss():
    held = lock("export").acquire()
    lost = lose_answers(1)

    held.release()

    assert len(lost) == 1
    assert row().released_at is not None


def test_a_line_that_was_closed_meanwhile_is_opened_anew():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server that could close it.")
    with lock("export"):
        pass
    with line(DATABASE) as own:
        own.ensure_connection()
        own.connection.close()

    with lock("export") as held:
        assert held.fence == 2


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"name": ""}, "1 to 255"),
        ({"name": "  "}, "1 to 255"),
        ({"name": "n" * 256}, "1 to 255"),
        ({"name": None}, "1 to 255"),
        ({"name": "a\nb"}, "printed"),
        ({"name": "a", "lease": 0}, "from 1 second"),
        ({"name": "a", "lease": 0.5}, "renewed every third"),
        ({"name": "a", "lease": "2d"}, "1 day"),
        ({"name": "a", "lease": "soon"}, "lease must be"),
        ({"name": "a", "wait": -1}, "wait must not be negative"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        lock(**said)


def test_an_unknown_database_is_refused_with_a_sentence():
    with pytest.raises(InvalidOption, match="not among DATABASES"):
        lock("export", using="nowhere").acquire()


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_lock_of_another_database_is_another_lock():
    with lock("export"), lock("export", using="other", lease=timedelta(minutes=1)) as held:
        assert held.fence == 1


@pytest.mark.django_db(transaction=False)
class TestInsideATransaction:
    """As in a Django TestCase: the lock joins the test's transaction and goes away with it."""

    def test_a_block_holds_the_lock(self):
        with lock("export") as held:
            assert held.fence == 1
            held.check()
            with pytest.raises(LockHeld):
                lock("export", wait="10s").acquire()

        with lock("export") as held:
            assert held.fence == 2

    def test_a_moved_clock_lets_others_in_and_the_holder_is_told(self):
        with pytest.raises(LockLost), lock("export", lease="1m") as held, moved_clock("2m"):
            with lock("export") as other:
                assert other.fence == 2
            with pytest.raises(LockLost):
                held.check()

    def test_async_code_joins_it_too(self):
        from asgiref.sync import async_to_sync

        async def export():
            async with lock("export") as held:
                return held.fence

        assert async_to_sync(export)() == 1
        assert row().fence == 1

    def test_nothing_of_it_stays(self):
        assert not Lock.objects.exists()
