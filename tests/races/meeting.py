"""Two statements that meet: one in an open transaction, the other against what it has locked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections, transaction

from tests.jobs import DATABASE

PATIENCE = 30
# MySQL's list of transactions does not change while it is read more often than ten times a second.
LOOK_EVERY = {"postgresql": 0.001, "mysql": 0.11, "sqlite": 0.001}


class Other(threading.Thread):
    """The second statement, on a connection of its own."""

    def __init__(self, statement: Callable[[], Any]) -> None:
        super().__init__()
        self.statement = statement
        self.session: Any = None
        self.is_under_way = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            connections[DATABASE].ensure_connection()
            self.session = session_of_this_thread()
            self.is_under_way.set()
            self.answer = self.statement()
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def waits_or_has_ended(self) -> bool:
        return not self.is_alive() or waits_for_a_lock(self.session)

    def result(self) -> Any:
        self.join(PATIENCE)
        assert not self.is_alive(), "The second statement still waits."
        if self.error is not None:
            raise self.error
        return self.answer


def meet(
    first: Callable[[], Any], second: Callable[[], Any], *, first_commits: bool = True
) -> tuple[Any, Any]:
    """Run the first in an open transaction, let the second meet it, end the first; return both.

    The transaction ends when the second has ended too, or waits for it.
    """
    other = Other(second)
    with transaction.atomic():
        one = first()
        other.start()
        assert other.is_under_way.wait(PATIENCE)
        while not other.waits_or_has_ended():
            other.join(LOOK_EVERY[connections[DATABASE].vendor])
        if not first_commits:
            transaction.set_rollback(True)
    return one, other.result()


def session_of_this_thread() -> Any:
    question = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}
    with connections[DATABASE].cursor() as cursor:
        cursor.execute(question.get(connections[DATABASE].vendor, "SELECT 1"))
        return cursor.fetchone()[0]


def waits_for_a_lock(session: Any) -> bool:
    """Return whether this session waits for another; SQLite cannot tell, and has one writer."""
    question = {
        "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s",
        "mysql": "SELECT count(*) FROM information_schema.innodb_trx "
        "WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id = %s",
    }.get(connections[DATABASE].vendor)
    if question is None:
        return True
    with connections[DATABASE].cursor() as cursor:
        cursor.execute(question, [session])
        return bool(cursor.fetchone()[0])
