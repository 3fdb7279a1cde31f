"""How far the statements walk on MySQL, MariaDB and SQLite: by rows read, not by time.

PostgreSQL's plans have a module of their own. With ONCE_TEST_SCHEDULED=1000000 the table is as
large as a busy one.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import connection

from django_once import identity, sql
from django_once.models import Job
from django_once.models.job.enqueue import enqueue_many
from django_once.models.job.ready import promote, readmit_known, seconds_to_next_due
from django_once.models.job.settle import mark_started, settle
from django_once.sql.endings import ORPHANED
from django_once.sql.values import Lane
from tests.jobs import DATABASE, a_worker, claim, new_job, store, success

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

SCHEDULED = int(os.environ.get("ONCE_TEST_SCHEDULED", 4_000))
ENDED = 4_000


@pytest.fixture
def crowd(transactional_db):
    """Many jobs that cannot run now, in the very lane that is looked at, and many that ended."""
    for _ in range(0, SCHEDULED, 4_000):
        members = [(identity.job_id(), "[]", "{}") for _ in range(4_000)]
        enqueue_many(DATABASE, new_job(run_after=timedelta(days=1)), members)
    members = [(identity.job_id(), "[]", "{}") for _ in range(ENDED)]
    enqueue_many(DATABASE, new_job(), members)
    holder = a_worker()
    while attempts := claim(holder, 5_000):
        settle(DATABASE, [success(one) for one in attempts])
    yield
    Job.objects.all()._raw_delete(DATABASE)


def rows_read():
    """Return how many rows this session has read so far, by index or not."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(count) for _, count in cursor.fetchall())


def reads_of(statement):
    before = rows_read()
    statement()
    return rows_read() - before


@pytest.mark.skipif(connection.vendor != "mysql", reason="Counts what MySQL reads.")
@pytest.mark.usefixtures("crowd")
def test_no_statement_walks_over_what_cannot_run():
    statements = sql.on(DATABASE)
    holder = a_worker()
    store(queue="mail"), store(priority=3), store()
    lanes = [(Lane("default", 0), 0), (Lane("mail", 0), 0), (Lane("default", 3), 0)]
    few = 60

    assert reads_of(lambda: statements.lanes_between("default", [])) < few
    assert reads_of(lambda: statements.lanes_between("default", [Lane("default", 0)])) < few
    assert reads_of(lambda: statements.claim(holder, identity.nonce(), lanes, 3)) < few
    assert reads_of(lambda: promote(DATABASE)) < few
    assert reads_of(lambda: seconds_to_next_due(DATABASE)) < few
    assert reads_of(lambda: statements.held(ORPHANED, 100)) < few
    assert reads_of(lambda: statements.claims_of(holder.id)) < few
    kept = {"SUCCESSFUL": 3600.0, "FAILED": 7200.0}
    assert reads_of(lambda: statements.ended(kept, None, 100)) < few
    attempts = claim(holder)
    assert reads_of(lambda: settle(DATABASE, [success(one) for one in attempts])) < few


@pytest.mark.skipif(connection.vendor != "sqlite", reason="Reads what SQLite plans.")
@pytest.mark.usefixtures("transactional_db")
def test_every_statement_searches_an_index():
    statements = sql.on(DATABASE)
    holder = a_worker()
    lane = Lane("default", 0)
    store()
    sent = []

    def note(execute, statement, parameters, *rest):
        sent.append((statement, parameters))
        return execute(statement, parameters, *rest)

    with connection.execute_wrapper(note):
        statements.lanes_between("default", [lane, Lane("mail", 0)])
        attempts = statements.claim(holder, identity.nonce(), [(lane, 0)], 3)
        mark_started(DATABASE, [(one.id, one.claim, 1.0) for one in attempts])
        statements.claims_of(holder.id)
        settle(DATABASE, [success(one) for one in attempts])
        promote(DATABASE)
        readmit_known(DATABASE, ["tests.add"])
        seconds_to_next_due(DATABASE)
        statements.held(ORPHANED, 100)
        statements.ended({"SUCCESSFUL": 3600.0, "FAILED": 7200.0}, None, 100)

    plans = [line for statement, parameters in sent for line in plan(statement, parameters)]
    # A scan of an index on some rows only is a walk over nothing but these.
    scans = [line for line in plans if line.startswith(("SCAN once_job", "SCAN job"))]
    assert [line for line in scans if "USING INDEX once_job_" not in line] == []
    assert sum("once_job_ready" in line for line in plans) >= 4
    assert any("(backend=? AND (queue,priority)>(?,?)" in line for line in plans)


def plan(statement, parameters):
    if not statement.lstrip().startswith(("SELECT", "UPDATE", "WITH")):
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [detail for *_, detail in cursor.fetchall()]
