"""How attempts end: all of it under the claim that began them, many in one statement.

Every statement that changes a job carries its guard in its WHERE, and its caller reads what
came back: rows that do not come back were changed by somebody else before. Outcomes travel as
one JSON parameter: it is the one batch that all of these databases unpack in a single statement,
and the one that costs Python least.

MySQL and MariaDB read the columns of a SET as already changed by the ones before. So no
assignment here reads a column that another one writes; but for `cancel_requested_at`, which is
written only with an end, where nobody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError

from django_once import clock
from django_once.sql import successes
from django_once.sql.repeat import has_ended_transaction
from django_once.sql.values import Held, Outcome, Whose
from django_once.sql.words import Words, write_json

# The columns of a batch; none has the name of a job's, which MySQL would find ambiguous.
OUTCOME: Final = {
    "job_id": "uuid", "nonce": "uuid", "n": "integer", "becomes": "text", "why": "text",
    "waits_for": "text", "value": "text", "entry": "text", "delay": "real", "ran": "real",
    "failed": "integer", "given_back": "integer", "died": "integer", "taken": "integer",
    "suspected": "integer",
}  # fmt: skip

STARTED: Final = {"job_id": "uuid", "nonce": "uuid", "ran": "real"}

# Level-triggered: all without a living worker, not only those of one that was just declared lost.
ORPHANED: Final = Whose(
    "NOT EXISTS (SELECT 1 FROM once_worker AS worker WHERE worker.id = job.worker "
    "AND worker.lost_at IS NULL AND worker.stopped_at IS NULL)"
)

# Says `status = 'RUNNING'` so that the partial index of running rows does not serve: a planner
# that takes this index for tiny walks all of it once for every member of the batch.
IS_RUNNING: Final = "job.status BETWEEN 'RUNNING' AND 'RUNNING'"

ENDED: Final = ("SUCCESSFUL", "FAILED")

BEGIN_SUCCESS: Final = "UPDATE once_job SET status = 'SUCCESSFUL' WHERE id = %s AND claim = %s"
MARK: Final = "once_outcome"

# The last entry of a job that was given back, or snoozed, after somebody had cancelled it.
CANCELLED_MEANWHILE: Final = (
    '"kind":"cancelled","attempt":0,"worker":"","error":"django_once.errors.Cancelled",'
    '"traceback":"The job was cancelled before an attempt of it ended."}'
)


def _by_id(outcome: Outcome) -> int:
    """Order a batch, so that two of them never wait for each other crosswise."""
    return outcome.id.int


class Endings(Words):
    """The statements that start and end attempts, and those that end or renew ended jobs."""

    # An attempt's start, where it must be on record.

    def start(self, job: UUID, claim: UUID) -> bool:
        """Record that this attempt's body is about to be called; False when it may not be."""
        sql = (
            f"UPDATE once_job SET started_at = coalesce(started_at, {self.now}), "
            f"last_attempted_at = {self.now} "
            "WHERE id = %s AND claim = %s AND status = 'RUNNING' AND last_attempted_at IS NULL"
        )
        return self.count(sql, [self.key(job), self.key(claim)]) == 1

    def mark_started(self, started: Sequence[tuple[UUID, UUID, float]]) -> int:
        """Write down when these attempts began: (job, claim, seconds ago); count those held."""
        batch = write_json(
            [
                {"job_id": str(self.key(job)), "nonce": str(self.key(claim)), "ran": ran}
                for job, claim, ran in sorted(started)
            ]
        )
        began = self.later("-o.ran")
        # A start that was put on record before the call stands as it is.
        changes = (
            f"started_at = coalesce(job.started_at, {began}), "
            f"last_attempted_at = coalesce(job.last_attempted_at, {began})"
        )
        return len(self.change_held(changes, STARTED, batch))

    # Sentence 2: an attempt ends once.

    def settle(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """End these attempts; return the ids of those that were still held.

        Whatever does not come back is superseded: its outcome was not written.
        """
        ordered = sorted(outcomes, key=_by_id)
        if all(outcome.is_plain_success for outcome in ordered):
            batch = successes.batch(self, ordered)
            return self.change_held(successes.changes(self), successes.COLUMNS, batch)
        return self.change_held(self._ending(len(ordered)), OUTCOME, self._batch(ordered))

    def change_held(self, changes: str, columns: Mapping[str, str], batch: str) -> set[UUID]:
        """Change running jobs that are still under the claims of a batch; return their ids."""
        sql = (
            f"UPDATE once_job AS job SET {changes} FROM {self.unpacked(columns)} "
            f"WHERE job.id = o.job_id AND job.claim = o.nonce AND {IS_RUNNING} RETURNING id"
        )
        return {
            job if isinstance(job, UUID) else UUID(job)
            for (job,) in self.rows_by_index(sql, [batch])
        }

    def _batch(self, outcomes: Sequence[Outcome]) -> str:
        return write_json([self._member(n, outcome) for n, outcome in enumerate(outcomes)])

    def _member(self, ordinal: int, outcome: Outcome) -> dict[str, Any]:
        member: dict[str, Any] = {
            "job_id": str(self.key(outcome.id)), "nonce": str(self.key(outcome.claim)),
            "n": ordinal, "becomes": outcome.status, "why": outcome.reason,
            "waits_for": outcome.blocked_by, "delay": outcome.delay,
            "failed": int(outcome.failed), "given_back": int(outcome.given_back),
            "died": int(outcome.died), "suspected": int(outcome.suspect),
        }  # fmt: skip
        # A member that is left out is NULL on every database; a JSON null is not.
        for name, value in (
            ("ran", outcome.ran),
            ("value", outcome.return_value),
            ("entry", outcome.entry),
            ("taken", 1 if outcome.taken else None),
        ):
            if value is not None:
                member[name] = value
        return member

    def _ending(self, places: int) -> str:
        """SQL of what a settle sets, from the row `job` and the outcome `o`.

        A cancel that was asked for while the job ran wins over all but a success.
        A suspect that ran to an end of its own is none any more.
        """
        comes_back = "(o.becomes = 'READY' AND job.cancel_requested_at IS NULL)"
        is_cancelled = "(o.becomes = 'READY' AND job.cancel_requested_at IS NOT NULL)"
        # Behind a gate nothing has a place of its own: it is promoted, and admitted in its turn.
        failed_meanwhile = (
            "(o.becomes = 'FAILED' AND o.why = 'raised' AND job.cancel_requested_at IS NOT NULL)"
        )
        runs_at_once = f"({comes_back} AND o.waits_for = '' AND o.delay <= 0 AND job.gate IS NULL)"
        began = self.later("-o.ran")
        return f"""
            status = CASE WHEN {is_cancelled} THEN 'FAILED' ELSE o.becomes END,
            reason = CASE WHEN {is_cancelled} OR {failed_meanwhile} THEN 'cancelled'
                ELSE o.why END,
            blocked_by = CASE WHEN {comes_back} THEN o.waits_for ELSE '' END,
            return_value = o.value,
            attempt = job.attempt - o.given_back,
            failures = job.failures + o.failed,
            deaths = job.deaths + o.died,
            suspect = (o.suspected = 1 OR (job.suspect AND o.ran IS NULL)),
            history = CASE WHEN o.entry IS NOT NULL THEN {self.with_entry("o.entry")}
                WHEN {is_cancelled} THEN {self.with_entry(f"'{CANCELLED_MEANWHILE}'")}
                ELSE job.history END,
            due_at = CASE WHEN {comes_back} AND o.delay > 0 THEN {self.later("o.delay")}
                ELSE job.due_at END,
            position = CASE WHEN {runs_at_once} THEN {self.position("o.n", places)} END,
            gate_rank = NULL,
            started_at = CASE WHEN o.ran IS NULL THEN job.started_at
                ELSE coalesce(job.started_at, {began}) END,
            last_attempted_at = CASE WHEN o.ran IS NULL THEN job.last_attempted_at
                ELSE coalesce(job.last_attempted_at, {began}) END,
            finished_at = CASE WHEN {comes_back} THEN NULL ELSE {self.now} END,
            unique_hash = CASE WHEN {comes_back} OR job.unique_until IS NOT NULL
                THEN job.unique_hash END,
            claim = CASE WHEN o.taken IS NULL THEN job.claim END,
            worker = CASE WHEN {comes_back} THEN NULL ELSE job.worker END,
            worker_name = CASE WHEN {comes_back} THEN '' ELSE job.worker_name END,
            cancel_requested_at = CASE WHEN o.why = 'cancelled'
                THEN coalesce(job.cancel_requested_at, {self.now}) ELSE job.cancel_requested_at END
        """

    # `exactly_once`: outcome first, verified last, in the transaction of the body.

    def begin_success(self, job: UUID, claim: UUID, longest_pause: float) -> str | None:
        """Write the success ahead of the body, which takes the row's lock.

        Returns a mark of this transaction, for `verify_success`; None if superseded. A session
        that is silent for so many seconds is ended by the server, where the server can.
        """
        if not self.count(f"{BEGIN_SUCCESS} AND status = 'RUNNING'", self._own(job, claim)):
            return None
        # Whatever ends the transaction takes the savepoint with it: a COMMIT or ROLLBACK of the
        # body's own, a statement that commits by itself, a deadlock.
        self.count(f"SAVEPOINT {MARK}")
        return MARK

    def verify_success(self, job: UUID, claim: UUID, mark: str, value: str, ran: float) -> bool:
        """Write value and end under a guard that sees `begin_success`; False if it is gone."""
        try:
            self.count(f"RELEASE SAVEPOINT {mark}")
        except DatabaseError as error:
            if not has_ended_transaction(error):
                raise
            return False
        return self.count(self.verifying(), [value, -ran, -ran, *self._own(job, claim)]) == 1

    def verifying(self) -> str:
        """SQL of the last statement; its guard can be narrowed further."""
        began = self.later("%s")
        return (
            f"UPDATE once_job SET return_value = %s, reason = '', finished_at = {self.now}, "
            f"started_at = coalesce(started_at, {began}), "
            f"last_attempted_at = coalesce(last_attempted_at, {began}), "
            "unique_hash = CASE WHEN unique_until IS NOT NULL THEN unique_hash END, "
            "position = NULL, gate_rank = NULL "
            "WHERE id = %s AND claim = %s AND status = 'SUCCESSFUL' AND finished_at IS NULL"
        )

    def deny_success(self, job: UUID, claim: UUID) -> bool:
        """Take back a success that a body committed by itself; False when there is none."""
        sql = (
            "UPDATE once_job SET status = 'RUNNING' WHERE id = %s AND claim = %s "
            "AND status = 'SUCCESSFUL' AND finished_at IS NULL"
        )
        return self.count(sql, self._own(job, claim)) == 1

    def pauses_limited(self, longest_pause: float) -> AbstractContextManager[None]:
        """Let the server end this session when it is silent in a transaction for so long.

        For a server that is told by a statement of its own, before the transaction begins.
        """
        return nullcontext()

    def _own(self, job: UUID, claim: UUID) -> list[Any]:
        return [self.key(job), self.key(claim)]

    # Sentence 3: whoever ends an attempt that is not its own reads the rows under a lock first.

    def held(self, whose: Whose, most: int) -> list[Held]:
        """Lock and return up to so many running jobs without a key."""
        return self._held(f"{whose.where} AND job.key IS NULL", whose.parameters, most)

    def held_among(self, whose: Whose, jobs: Sequence[UUID]) -> list[Held]:
        """Lock and return those of these jobs; call it under the locks of their series."""
        where = f"{whose.where} AND job.id IN ({self.marks(jobs)})"
        return self._held(where, [*whose.parameters, *map(self.key, jobs)], len(jobs))

    def held_under_keys(self, whose: Whose, most: int) -> list[UUID]:
        """Return up to so many running jobs with a key, without a lock: their series come first."""
        sql = (
            "SELECT job.id FROM once_job AS job WHERE job.status = 'RUNNING' "
            f"AND job.claim IS NOT NULL AND {whose.where} AND job.key IS NOT NULL LIMIT %s"
        )
        return [UUID(str(job)) for (job,) in self.rows(sql, [*whose.parameters, most])]

    def of_worker(self, worker: UUID) -> Whose:
        """Return the condition of a worker's jobs."""
        return Whose("job.worker = %s", (self.key(worker),))

    def of_claims(self, worker: UUID, claims: Sequence[UUID]) -> Whose:
        """Return the condition of a worker's jobs under these claims."""
        under = f"job.worker = %s AND job.claim IN ({self.marks(claims)})"
        return Whose(under, (self.key(worker), *map(self.key, claims)))

    def claims_of(self, worker: UUID) -> set[UUID]:
        """Return the nonces under which running jobs stand as this worker's."""
        sql = "SELECT DISTINCT claim FROM once_job WHERE worker = %s AND status = 'RUNNING'"
        return {UUID(str(claim)) for (claim,) in self.rows_by_index(sql, [self.key(worker)])}

    def _held(self, where: str, parameters: Sequence[Any], most: int) -> list[Held]:
        sql = (
            "SELECT job.id, job.claim, job.task, job.worker, job.worker_name, job.attempt, "
            "job.delivery, job.last_attempted_at, job.suspect, job.failures, job.max_attempts, "
            f"job.deaths, job.max_deaths, job.cancel_requested_at, {self.length('job.history')} "
            "FROM once_job AS job WHERE job.status = 'RUNNING' AND job.claim IS NOT NULL "
            f"AND {where} LIMIT %s {self.LOCK_FREE}"
        )
        return [_as_held(row) for row in self.rows(sql, [*parameters, most])]

    # What people ask for.

    def free(self, jobs: Sequence[UUID]) -> list[UUID]:
        """Lock and return those of these jobs that nobody else has locked, in order of ids."""
        sql = (
            f"SELECT job.id FROM once_job AS job WHERE job.id IN ({self.marks(jobs)}) "
            f"ORDER BY job.id {self.LOCK_FREE}"
        )
        return [UUID(str(job)) for (job,) in self.rows(sql, list(map(self.key, jobs)))]

    def cancel_waiting(self, jobs: Sequence[UUID], entry: str) -> int:
        """End these jobs as cancelled, as far as they wait; count them."""
        sql = f"""
            UPDATE once_job AS job SET status = 'FAILED', reason = 'cancelled', blocked_by = '',
            position = NULL, gate_rank = NULL, unique_hash = NULL, finished_at = {self.now},
            cancel_requested_at = coalesce(job.cancel_requested_at, {self.now}),
            history = {self.with_entry("%s")}
            WHERE job.id IN ({self.marks(jobs)}) AND job.status = 'READY'"""
        return self.count(sql, [entry, *map(self.key, jobs)])

    def cancel_running(self, jobs: Sequence[UUID]) -> int:
        """Ask that these jobs end as cancelled, as far as they run; count them."""
        sql = f"""
            UPDATE once_job SET cancel_requested_at = coalesce(cancel_requested_at, {self.now})
            WHERE id IN ({self.marks(jobs)}) AND status = 'RUNNING'"""
        return self.count(sql, list(map(self.key, jobs)))

    def retry(self, jobs: Sequence[UUID]) -> int:
        """Put these ended jobs back with fresh budgets, each in its place; count them.

        Neither fence nor nonce goes back, so an attempt that still runs somewhere cannot end it.
        """
        order = " ".join(f"WHEN %s THEN {n}" for n in range(len(jobs)))
        place = self.position(f"CASE job.id {order} END", len(jobs))
        sql = f"""
            UPDATE once_job AS job SET status = 'READY', reason = '', return_value = NULL,
            attempt = 0, failures = 0, deaths = 0, due_at = {self.now},
            position = CASE WHEN job.gate IS NULL THEN {place} END,
            expires_at = NULL, cancel_requested_at = NULL, finished_at = NULL,
            worker = NULL, worker_name = ''
            WHERE job.id IN ({self.marks(jobs)}) AND job.status IN {ENDED}"""
        keys = list(map(self.key, jobs))
        return self.count(sql, [*keys, *keys])

    def ended(
        self,
        kept: Mapping[str, float],
        backend: str | None,
        most: int,
        *,
        queue: str = "",
        since: datetime | None = None,
    ) -> list[UUID]:
        """Lock and return up to so many jobs that ended longer ago than their status is kept.

        `kept` is seconds by status. Nothing that ended before `since` is looked at: whoever prunes
        in batches knows what it has seen, and does not walk over what is kept longer each time.
        """

        def before(seconds: float) -> str:
            return f"job.finished_at < {self.later(f'-{float(seconds)!r}')}"

        # What says of itself how long its success is kept goes in its own time.
        own = "job.kept_for IS NOT NULL AND job.status = 'SUCCESSFUL'"
        over = " OR ".join(
            f"(job.status = %s AND {before(age)} AND NOT ({own}))" for age in kept.values()
        )
        conditions = [before(min(kept.values())), f"({over})"]
        parameters: list[Any] = list(kept)
        if backend is not None:
            conditions.append("job.backend = %s")
            parameters.append(backend)
        if queue:
            conditions.append("job.queue = %s")
            parameters.append(queue)
        if since is not None:
            conditions.append(f"job.finished_at >= {self.as_moment('%s')}")
            parameters.append(clock.to_column(since, self.vendor))
        sql = (
            f"SELECT job.id FROM once_job AS job WHERE {' AND '.join(conditions)} "
            f"ORDER BY job.finished_at LIMIT %s {self.LOCK_FREE}"
        )
        return [UUID(str(job)) for (job,) in self.rows(sql, [*parameters, most])]

    def delete(self, jobs: Sequence[UUID]) -> int:
        """Delete these jobs, as far as they have ended; count them."""
        sql = f"{self.DELETE_BY_KEY} WHERE id IN ({self.marks(jobs)}) AND status IN {ENDED}"
        return self.count(sql, list(map(self.key, jobs)))


def _as_held(row: Sequence[Any]) -> Held:
    """Return a row of `_held` as a value; ids come as text where no column keeps a UUID."""
    return Held(
        id=UUID(str(row[0])),
        claim=UUID(str(row[1])),
        task=row[2],
        worker=UUID(str(row[3])) if row[3] else None,
        worker_name=row[4],
        attempt=row[5],
        delivery=row[6],
        was_started=row[7] is not None,
        is_suspect=bool(row[8]),
        failures=row[9],
        max_attempts=row[10],
        deaths=row[11],
        max_deaths=row[12],
        cancel_requested=row[13] is not None,
        history_length=row[14],
    )
