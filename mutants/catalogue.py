"""The mutations: what each takes away, where, and which tests must go red for it.

Each is one change in one place; where a guard stands in several statements, as few as take it
away. A text that is not found exactly once no longer applies, which is an error: a mutation that
changes nothing would survive for ever.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A text of one file, and what stands there instead."""

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A guard that is taken away, and who must notice."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


SETTLING = "sql/endings.py"
HELD = "WHERE job.id = o.job_id AND job.claim = o.nonce AND {IS_RUNNING} RETURNING id"

MUTATIONS = (
    Mutation(
        "settle by id alone",
        (Edit(SETTLING, HELD, "WHERE job.id = o.job_id RETURNING id"),),
        ("tests/sql/test_settle.py", "tests/races/test_meetings.py"),
    ),
    Mutation(
        "settle by status only, without the nonce",
        (Edit(SETTLING, HELD, "WHERE job.id = o.job_id AND {IS_RUNNING} RETURNING id"),),
        ("tests/sql/test_settle.py", "tests/races/test_meetings.py"),
    ),
    Mutation(
        "settle whatever the status",
        (
            Edit(
                SETTLING, HELD,
                "WHERE job.id = o.job_id AND job.claim = o.nonce RETURNING id",
            ),
        ),
        ("tests/sql/test_settle.py",),
    ),
    Mutation(
        "expire only at the moment of loss, not by the level",
        (
            Edit(
                "processes/keeper.py",
                "_, swept = self._persistence.tried(lambda: sweep(self._database))",
                "_, swept = self._persistence.tried(lambda: sweep(self._database) if lost else [])",
            ),
        ),
        ("tests/processes/test_survival_crash_points.py",),
    ),
    Mutation(
        "sweep only what a lost worker held",
        (
            Edit(
                SETTLING,
                '"NOT EXISTS (SELECT 1 FROM once_worker AS worker WHERE worker.id = job.worker "\n'
                '    "AND worker.lost_at IS NULL AND worker.stopped_at IS NULL)"',
                '"EXISTS (SELECT 1 FROM once_worker AS worker WHERE worker.id = job.worker "\n'
                '    "AND worker.lost_at IS NOT NULL)"',
            ),
        ),
        ("tests/sql/test_expire.py",),
    ),
    Mutation(
        "no reconciliation",
        (
            Edit(
                "models/job/expire.py",
                "    if not unheld:\n        return []\n",
                "    if unheld or not unheld:\n        return []\n",
            ),
        ),
        ("tests/sql/test_expire.py", "tests/processes/test_survival_unknown.py"),
    ),
    Mutation(
        "reconcile what is held too",
        (
            Edit(
                "models/job/expire.py",
                "statements.claims_of(worker) - set(held)",
                "statements.claims_of(worker)",
            ),
        ),
        ("tests/sql/test_expire.py",),
    ),
    Mutation(
        "count attempts at the end",
        (
            Edit(
                "sql/predicates.py",
                "attempt = job.attempt + 1, ",
                "attempt = job.attempt, ",
            ),
            Edit(SETTLING, "attempt = job.attempt - o.given_back,",
                 "attempt = job.attempt + CASE WHEN o.taken IS NULL THEN 1 - o.given_back "
                 "ELSE 0 END,"),
            Edit("sql/statements.py", "job.fence, job.attempt, ", "job.fence, job.attempt + 1, "),
        ),
        ("tests/sql/test_claim.py", "tests/sql/test_expire.py"),
    ),
    Mutation(
        "put a lost at_most_once job back",
        (
            Edit(
                "models/job/expire.py",
                'elif held.delivery == "at_most_once" and has_begun:',
                'elif held.delivery == "at_most_once" and has_begun and not held.id:',
            ),
        ),
        ("tests/sql/test_expire.py",),
    ),
    Mutation(
        "call an at_most_once body before its start is on record",
        (
            Edit(
                "processes/runner.py",
                "return attempt.delivery == AT_MOST_ONCE or attempt.is_suspect",
                "return attempt.is_suspect",
            ),
        ),
        ("tests/processes/test_survival_crash_points.py",),
    ),
    Mutation(
        "start twice under one claim",
        (
            Edit(
                SETTLING,
                "AND status = 'RUNNING' AND last_attempted_at IS NULL",
                "AND status = 'RUNNING'",
            ),
        ),
        ("tests/sql/test_settle.py", "tests/races/test_meetings.py"),
    ),
    Mutation(
        "Python's clock in the lease",
        (
            Edit(
                "models/worker.py",
                "return still_held.update(leased_until=Now() + lease, renewed_at=Now())",
                "return still_held.update(leased_until=clock.host_now() + lease, "
                "renewed_at=Now())",
            ),
            Edit(
                "models/worker.py",
                "from django_once.clock import Now",
                "from django_once import clock\nfrom django_once.clock import Now",
            ),
        ),
        ("tests/sql/test_lease_clock.py",),
    ),
    Mutation(
        "Python's clock where leases lapse",
        (
            Edit(
                "models/worker.py",
                "lost_at=None, stopped_at=None, leased_until__lt=Now()",
                "lost_at=None, stopped_at=None, leased_until__lt=clock.host_now()",
            ),
            Edit(
                "models/worker.py",
                "from django_once.clock import Now",
                "from django_once import clock\nfrom django_once.clock import Now",
            ),
        ),
        ("tests/sql/test_lease_clock.py",),
    ),
    Mutation(
        "renew a lease that was lost",
        (
            Edit(
                "models/worker.py",
                "pk__in=workers, lost_at=None, stopped_at=None\n    )\n    return still_held",
                "pk__in=workers, stopped_at=None\n    )\n    return still_held",
            ),
        ),
        ("tests/races/test_meetings.py",),
    ),
    Mutation(
        "outcome and effects in two transactions",
        (
            Edit(
                "processes/one_transaction.py",
                "            crash_point(\"exactly_once.begun\")",
                "            transaction.get_connection(self.database).connection.commit()\n"
                "            crash_point(\"exactly_once.begun\")",
            ),
        ),
        ("tests/test_exactly_once.py",),
    ),
    Mutation(
        "exactly_once not verified last",
        (
            Edit(
                "processes/one_transaction.py",
                "        if not is_whole or not sql.on(self.database).verify_success(",
                "        if not sql.on(self.database).verify_success(",
            ),
        ),
        ("tests/test_exactly_once.py",),
    ),
    Mutation(
        "a lost answer to COMMIT taken for a failure",
        (
            Edit(
                "processes/one_transaction.py",
                "        if self.is_verified:\n            return self._asked(exception)\n",
                "        if self.is_verified and not exception:\n"
                "            return self._asked(exception)\n",
            ),
        ),
        ("tests/test_exactly_once.py", "tests/processes/test_survival_unknown.py"),
    ),
    Mutation(
        "an unknown answer read without a lock",
        (
            Edit(
                "models/job/settle.py",
                "jobs = locking.filter(",
                "jobs = Job.objects.using(database).filter(",
            ),
        ),
        ("tests/races/test_meetings.py",),
    ),
    Mutation(
        "a batch of ends that is not cut when one is refused",
        (
            Edit(
                "models/job/settle.py",
                "        if not was_refused(error):\n            raise\n",
                "        if not was_refused(error) or len(outcomes) > 1:\n            raise\n",
            ),
        ),
        ("tests/sql/test_settle.py",),
    ),
    Mutation(
        "claim without SKIP LOCKED",
        (
            Edit(
                "sql/postgresql.py",
                'LOCK_FREE = "FOR NO KEY UPDATE SKIP LOCKED"',
                'LOCK_FREE = "FOR NO KEY UPDATE"',
            ),
        ),
        ("tests/races/test_meetings.py",),
    ),
    Mutation(
        "claim for a worker that is lost",
        (
            Edit(
                "sql/predicates.py",
                '    "AND worker.lost_at IS NULL AND worker.stopped_at IS NULL)"',
                '    "AND worker.id IS NOT NULL)"',
            ),
        ),
        ("tests/sql/test_claim.py",),
    ),
)  # fmt: skip
