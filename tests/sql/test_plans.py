"""Every statement takes its index on a table of PostgreSQL that was never analyzed.

What a statement does is what its plan says when it is run: each is explained right before it is
sent, and undone. With ONCE_TEST_SCHEDULED=1000000 the table is as large as a busy one.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta

import pytest
from django.db import connection

from django_once import identity, sql
from django_once.models.job.enqueue import enqueue_many
from django_once.models.job.expire import expire_dead, reconcile, sweep
from django_once.models.job.prune import prune
from django_once.models.job.ready import promote, readmit_known, seconds_to_next_due
from django_once.models.job.settle import mark_started, settle, what_became
from django_once.models.worker import expire
from django_once.sql.postgresql import BY_INDEX
from django_once.sql.values import UNKNOWN_TASK, Lane
from django_once.testing import moved_clock
from tests.jobs import DATABASE, a_worker, claim, given_back, new_job, success

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="Reads what PostgreSQL plans."),
    pytest.mark.timeout(900),
]

SCHEDULED = int(os.environ.get("ONCE_TEST_SCHEDULED", 4_000))
FRESH = max(2_000, SCHEDULED * 15 // 100)
DUE = 700
BATCH = 500
# A walk that reads more rows than this is no walk into an index.
FEW = 3 * BATCH


@pytest.fixture
def never_analyzed():
    """A table that nothing has looked at: fresh jobs, scheduled ones, and a few that are due."""
    with connection.cursor() as cursor:
        # As new, so that no statistics of another test are left.
        cursor.execute("TRUNCATE once_job")
        cursor.execute("ALTER TABLE once_job SET (autovacuum_enabled = false)")
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'once_job'::regclass")
    try:
        fill(FRESH)
        fill(DUE, run_after=timedelta(seconds=1))
        fill(SCHEDULED, run_after=timedelta(days=1))
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE once_job RESET (autovacuum_enabled)")
            cursor.execute("TRUNCATE once_job")


def fill(count, **said):
    for start in range(0, count, 10_000):
        members = [(identity.job_id(), "[]", "{}") for _ in range(min(10_000, count - start))]
        enqueue_many(DATABASE, new_job(**said), members)


class Plans:
    """Explains each statement before it is sent, and keeps what the plans say of the jobs."""

    def __init__(self):
        self.nodes = []

    def __call__(self, execute, statement, parameters, many, context):
        bare = statement.removeprefix(BY_INDEX)
        if bare.lstrip().startswith(("SELECT", "UPDATE", "WITH", "DELETE")):
            self.explain(context["cursor"].cursor, statement, bare, parameters)
        return execute(statement, parameters, many, context)

    def explain(self, cursor, statement, bare, parameters):
        settings = statement[: len(statement) - len(bare)]
        inside = connection.in_atomic_block
        cursor.execute("SAVEPOINT explained" if inside else "BEGIN")
        if settings:
            cursor.execute(settings)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {bare}", parameters)
        (answer,) = cursor.fetchone()
        plan = json.loads(answer) if isinstance(answer, str) else answer
        cursor.execute("ROLLBACK TO SAVEPOINT explained" if inside else "ROLLBACK")
        self.look(plan[0]["Plan"])

    def look(self, node):
        if node.get("Relation Name") == "once_job" and "Scan" in node["Node Type"]:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            # A bitmap of few rows is as good: what leads to it stands below.
            leading = node["Plans"][0] if node["Node Type"] == "Bitmap Heap Scan" else node
            index = leading.get("Index Name", leading["Node Type"])
            self.nodes.append((index, round(read * node["Actual Loops"])))
        for child in node.get("Plans", []):
            self.look(child)


def indexes_of(verb, most=FEW):
    """Run a verb; return the indexes that lead to its jobs. It may not walk."""
    plans = Plans()
    with connection.execute_wrapper(plans):
        verb()
    assert plans.nodes, "Nothing was asked of the jobs."
    assert [(index, read) for index, read in plans.nodes if read > most] == []
    return {index for index, _ in plans.nodes}


@pytest.mark.usefixtures("never_analyzed")
def test_every_statement_takes_its_index_whatever_the_planner_believes():
    statements = sql.on(DATABASE)
    holder, lane = a_worker(), Lane("default", 0)
    key = "once_job_pkey"

    def claim_at(low):
        return lambda: statements.claim(holder, identity.nonce(), [(lane, low)], BATCH)

    assert indexes_of(lambda: statements.lanes_between("default", [])) == {"once_job_ready"}
    assert indexes_of(lambda: statements.lanes_between("default", [lane])) == {"once_job_ready"}
    assert indexes_of(claim_at(0)) == {"once_job_ready", key}
    attempts = claim(holder, BATCH)
    assert indexes_of(claim_at(attempts[-1].position)) == {"once_job_ready", key}
    pairs = [(one.id, one.claim) for one in attempts]
    assert indexes_of(lambda: mark_started(DATABASE, [(*pair, 1.0) for pair in pairs])) == {key}
    assert indexes_of(lambda: what_became(DATABASE, pairs[:5])) == {key}
    unknown = [given_back(one, blocked_by=UNKNOWN_TASK) for one in attempts[:200]]
    assert indexes_of(lambda: settle(DATABASE, unknown)) == {key}
    known = ["tests.add"]
    assert indexes_of(lambda: readmit_known(DATABASE, known)) == {"once_job_blocked", key}
    succeeded = [success(one) for one in attempts[200:]]
    assert indexes_of(lambda: settle(DATABASE, succeeded)) == {key}
    assert indexes_of(lambda: reconcile(DATABASE, holder.id, [])) == {"once_job_running", key}


@pytest.mark.usefixtures("never_analyzed")
def test_what_the_keeper_does_takes_its_index_too():
    key = "once_job_pkey"
    with moved_clock("2s"):
        assert indexes_of(lambda: promote(DATABASE, BATCH)) == {"once_job_waiting", key}
        assert indexes_of(lambda: seconds_to_next_due(DATABASE)) == {"once_job_waiting"}
    lapsed, dead = a_worker(lease=timedelta(seconds=-1)), a_worker()
    claim(lapsed, BATCH), claim(dead, BATCH)
    expire(DATABASE)
    assert indexes_of(lambda: sweep(DATABASE)) == {"once_job_running", key}
    assert indexes_of(lambda: expire_dead(DATABASE, dead.id, [], "x")) == {"once_job_running", key}
    settle(DATABASE, [success(one) for one in claim(a_worker(), BATCH)])
    kept = {"SUCCESSFUL": timedelta(0)}
    with moved_clock("2s"):
        used = indexes_of(lambda: prune(DATABASE, None, kept))
    assert used == {"once_job_finished", key}


@pytest.mark.usefixtures("never_analyzed")
def test_a_claim_of_five_hundred_takes_milliseconds():
    holder = a_worker()
    took = []

    for _ in range(3):
        began = time.perf_counter()
        assert len(claim(holder, BATCH)) == BATCH
        took.append(time.perf_counter() - began)

    print(f"{FRESH} fresh, {SCHEDULED} scheduled: {[round(one * 1000, 1) for one in took]} ms")
    assert min(took) < 0.5
