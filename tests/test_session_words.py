"""Which statements change their session: in doubt it is assumed that they do."""

from __future__ import annotations

import pytest

from django_once.sql.session import changes_session


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1", "  insert into a values (1)", "(SELECT 1) UNION (SELECT 2)",
        "/* shop */ SELECT 1", "SET CONSTRAINTS ALL DEFERRED",
        "WITH a AS (SELECT 1) SELECT * FROM a", 'SAVEPOINT "s1"', "ROLLBACK TO SAVEPOINT s1",
        "SET LOCAL enable_seqscan = off; SET LOCAL jit = off; UPDATE a SET b = 1",
        "UPDATE a SET b = 1 RETURNING set_config('idle_in_transaction_session_timeout', '1', true)",
        "SELECT pg_advisory_xact_lock(7)", "SELECT target_lock FROM a",
    ],
)  # fmt: skip
def test_what_reads_or_writes_rows_leaves_a_session_as_it_was(sql):
    assert not changes_session(sql, "postgresql")


@pytest.mark.parametrize(
    "sql",
    [
        "SET search_path = shop", "set role admin", "SET SESSION sql_mode = ''", "RESET ALL",
        "BEGIN",
        "START TRANSACTION", "COMMIT", "LISTEN a", "PRAGMA foreign_keys = OFF", "ATTACH 'a' AS b",
        "CREATE TEMP TABLE a (b int)", "LOCK TABLES a WRITE", "DO $$ BEGIN END $$", "CALL shop()",
        "SELECT set_config('search_path', 'shop', false)", "SELECT pg_advisory_lock(7)",
        "SELECT GET_LOCK('a', 1)", "SELECT 1; SET ROLE admin",
        "SET LOCAL jit = off; SET ROLE admin",
        "/* SELECT */ SET ROLE admin", ("composed", "by the driver"),
    ],
)  # fmt: skip
def test_of_any_other_it_is_assumed_that_it_did_not(sql):
    assert changes_session(sql, "postgresql")


def test_a_transaction_that_django_begins_on_sqlite_is_no_change():
    assert not changes_session("BEGIN IMMEDIATE", "sqlite")
    assert changes_session("BEGIN", "mysql")
