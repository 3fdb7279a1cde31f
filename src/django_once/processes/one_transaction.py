"""An `exactly_once` body: its outcome first, then the body, then value and end; one COMMIT.

Writing the outcome first takes the row's lock: while this session lives nobody else ends the job,
and a superseded attempt stops before it has done anything. Verifying it last catches a body that
swallowed a database error: what it "wrote" is gone, and so is the outcome. On PostgreSQL the
transaction is broken then, and its COMMIT would answer ROLLBACK without an error; on MySQL a
deadlock has rolled back all of it and what follows runs in another transaction.

Once COMMIT was sent, an error no longer says what became of it: the line may have been cut after
the server had committed. So the row is asked, under a lock, which waits for a commit still in
flight; only its answer decides. What a hook of `on_commit` raises comes later, and is only told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import DatabaseError, connections, transaction

from django_once import events, sql
from django_once.crash import crash_point
from django_once.errors import BrokenTransaction
from django_once.models.job.settle import deny_success, what_became
from django_once.models.series.settle import name_next
from django_once.processes import ends
from django_once.processes.ends import Body, Ended
from django_once.processes.persistence import LOST, insist
from django_once.sql.removals import Removals
from django_once.sql.repeat import has_undone_in_silence
from django_once.sql.values import RAISED

# A body without a timeout may be silent for so long between two statements.
LONGEST_PAUSE: Final = 3600.0


def run(body: Body, call: Callable[[Body], Any]) -> Ended:
    """Call the body inside the transaction that ends its job, and return how it ended."""
    passage = _Passage(body)
    try:
        passage.run(call)
    except _Gone:
        return ends.superseded(body.attempt)
    except BaseException as exception:  # noqa: BLE001 - a body may raise anything
        ended = passage.after(exception)
        if ended.outcome is not None:
            ends.let_a_person_interrupt(exception)
        return ended
    crash_point("exactly_once.committed")
    return Ended(body.attempt, None, ran=body.running.seconds)


class _Gone(Exception):
    """The attempt was superseded before its body was called."""


class _Passage:
    """One body's way through its transaction, and how far it came."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.database = body.backend.settings.database
        self.was_called = False
        self.is_verified = False
        self.is_committed = False
        self._is_doomed = False
        self._left_open = False
        self._session: Any = None

    def run(self, call: Callable[[Body], Any]) -> None:
        """Begin, call, verify and commit."""
        attempt = self.body.attempt
        statements = sql.on(self.database)
        pause = self._longest_pause()
        with statements.pauses_limited(pause), transaction.atomic(using=self.database):
            mark = statements.begin_success(attempt.id, attempt.claim, pause)
            if mark is None:
                raise _Gone
            # Before any hook of the body: what is raised after it is a hook's, and not COMMIT's.
            transaction.on_commit(self._committed, using=self.database)
            self._session = connections[self.database].connection
            crash_point("exactly_once.begun")
            self.was_called = True
            with self._watched(), self._whole_blocks():
                value = call(self.body)
            crash_point("exactly_once.returned")
            self._verify(mark, ends.value_text(self.body, value))
            if attempt.key is not None:
                name_next(self.database, attempt.id, self.body.running.next)
            self.is_verified = True
            crash_point("exactly_once.verified")

    def after(self, exception: BaseException) -> Ended:
        """Return the end of an attempt whose transaction did not simply commit."""
        attempt = self.body.attempt
        if self.is_committed:
            events.hook_failed(attempt.id, attempt.task, ends.tellable(self.body, exception))
            return Ended(attempt, None)
        if self.is_verified:
            return self._asked(exception)
        if not self.was_called and isinstance(exception, LOST):
            return ends.given_back(attempt)
        # Asked after each failure: a body may also have committed first, and raised then.
        if self.was_called and self._was_committed_by_its_body():
            error = BrokenTransaction(
                f"Task {attempt.task} committed its transaction by itself, or by a statement that "
                "commits. What it wrote before is kept although the attempt failed, so it is not "
                "tried again. A body that is exactly_once leaves the COMMIT to its worker."
            )
            error.__cause__ = exception
            return ends.over(attempt, RAISED, error, failed=True)
        if isinstance(exception, (DatabaseError, *LOST, BrokenTransaction)) and self._is_cut_off():
            return ends.cut_off(self.body, exception)
        return ends.failed(self.body, exception)

    def _committed(self) -> None:
        self.is_committed = True

    def _is_cut_off(self) -> bool:
        """Return whether the session of this transaction is gone, and all it wrote with it."""
        connection = connections[self.database]
        is_another = connection.connection is not self._session
        return is_another or connection.connection is None or not connection.is_usable()

    def _longest_pause(self) -> float:
        timeout = self.body.attempt.timeout
        if timeout is None:
            return LONGEST_PAUSE
        return timeout + self.body.backend.settings.lease.total_seconds()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Notice errors after which MySQL goes on with a part of the transaction."""
        connection = connections[self.database]
        if connection.vendor != "mysql":
            yield
            return
        with connection.execute_wrapper(self._watch):
            yield

    @contextmanager
    def _whole_blocks(self) -> Iterator[None]:
        """Leave the atomic() blocks that the body entered and did not leave, undoing them.

        Else the end of its transaction would be that of a block inside it, and commit nothing.
        """
        connection = connections[self.database]
        blocks = len(connection.atomic_blocks)
        try:
            yield
        finally:
            while len(connection.atomic_blocks) > blocks:
                self._left_open = True
                error = BrokenTransaction("An atomic() block was not left.")
                connection.atomic_blocks[-1].__exit__(BrokenTransaction, error, None)

    def _watch(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        try:
            return execute(sql, params, many, context)
        except DatabaseError as error:
            self._is_doomed = self._is_doomed or has_undone_in_silence(error)
            raise

    def _verify(self, mark: str, value: str) -> None:
        attempt, connection = self.body.attempt, connections[self.database]
        is_broken = self._is_doomed or self._left_open or connection.needs_rollback
        is_whole = connection.in_atomic_block and not is_broken
        if not is_whole or not self._is_written(mark, value):
            raise BrokenTransaction(
                f"Task {attempt.task} swallowed a database error or ended its transaction, so what "
                "it wrote there is gone, and its success with it. Let database errors pass, or "
                "catch them around an atomic() block of their own."
            )

    def _is_written(self, mark: str, value: str) -> bool:
        """Write the end of the job, or take it away, where nothing of it is to be kept."""
        attempt, statements = self.body.attempt, sql.on(self.database)
        if attempt.is_removed:
            return Removals(statements).verify(attempt.id, attempt.claim, mark)
        ran = self.body.running.seconds
        return statements.verify_success(attempt.id, attempt.claim, mark, value, ran)

    def _was_committed_by_its_body(self) -> bool:
        if connections[self.database].in_atomic_block:
            # In a transaction around this one, as a TestCase has it, nothing was committed.
            return False
        attempt = self.body.attempt
        return insist(
            self.database,
            f"end of {attempt.id}",
            lambda: deny_success(self.database, attempt.id, attempt.claim),
        )

    def _asked(self, exception: BaseException) -> Ended:
        """Return what the row says: COMMIT was sent, and its answer was lost."""
        attempt = self.body.attempt
        fates = insist(
            self.database,
            f"commit of {attempt.id}",
            lambda: what_became(
                self.database,
                [(attempt.id, attempt.claim)],
                [attempt.id] if attempt.is_removed else (),
            ),
        )
        match fates[attempt.id]:
            case "settled":
                return Ended(attempt, None)
            case "held" if isinstance(exception, LOST):
                return ends.cut_off(self.body, exception)
            case "held":
                return ends.failed(self.body, exception)
        return ends.superseded(attempt)
