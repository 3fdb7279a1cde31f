"""The history: a trigger on the table of jobs writes down every change of status, fence and claim.

It is complete whatever the code does, and says which process changed the row: each session has
left its pid where the trigger finds it.
"""

from __future__ import annotations

from typing import Any

COLUMNS = (
    "job, was, became, claim_was, claim, fence_was, fence, attempt_was, attempt, "
    "worker_was, worker, is_orphan, writer"
)
OLD = "OLD.id, OLD.status, NEW.status, OLD.claim, NEW.claim, OLD.fence, NEW.fence, OLD.attempt"
CHANGED = f"{OLD}, NEW.attempt, OLD.worker, NEW.worker"
BORN = "NEW.id, NULL, NEW.status, NULL, NEW.claim, NULL, NEW.fence, NULL, NEW.attempt, NULL, NULL"
# Whether the holder was declared lost, or had ended, when the row was changed.
ORPHAN = (
    "NOT EXISTS (SELECT 1 FROM once_worker w WHERE w.id = OLD.worker "
    "AND w.lost_at IS NULL AND w.stopped_at IS NULL)"
)

POSTGRESQL = (
    """CREATE TABLE chaos_history (
        number bigserial PRIMARY KEY, job uuid, was text, became text, claim_was uuid, claim uuid,
        fence_was bigint, fence bigint, attempt_was int, attempt int, worker_was uuid, worker uuid,
        is_orphan boolean, writer int, at timestamptz DEFAULT clock_timestamp())""",
    f"""CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE pid int := nullif(current_setting('chaos.pid', true), '')::int;
    BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO chaos_history ({COLUMNS}) VALUES ({BORN}, false, pid);
        ELSIF (OLD.status, OLD.fence, OLD.claim) IS DISTINCT FROM (NEW.status, NEW.fence, NEW.claim)
        THEN
            INSERT INTO chaos_history ({COLUMNS}) VALUES ({CHANGED}, {ORPHAN}, pid);
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE ON once_job
        FOR EACH ROW EXECUTE FUNCTION chaos_note()""",
)

SQLITE = (
    """CREATE TABLE chaos_history (
        number integer PRIMARY KEY AUTOINCREMENT, job, was, became, claim_was, claim, fence_was,
        fence, attempt_was, attempt, worker_was, worker, is_orphan, writer,
        at DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')))""",
    f"""CREATE TRIGGER chaos_born AFTER INSERT ON once_job BEGIN
        INSERT INTO chaos_history ({COLUMNS}) VALUES ({BORN}, 0, chaos_pid()); END""",
    f"""CREATE TRIGGER chaos_note AFTER UPDATE ON once_job
        WHEN OLD.status <> NEW.status OR OLD.fence <> NEW.fence OR OLD.claim IS NOT NEW.claim
        BEGIN INSERT INTO chaos_history ({COLUMNS})
        VALUES ({CHANGED}, {ORPHAN}, chaos_pid()); END""",
)

MYSQL = (
    """CREATE TABLE chaos_history (
        number bigint AUTO_INCREMENT PRIMARY KEY, job char(36), was varchar(10), became varchar(10),
        claim_was char(36), claim char(36), fence_was bigint, fence bigint, attempt_was int,
        attempt int, worker_was char(36), worker char(36), is_orphan bool, writer int,
        at datetime(6) DEFAULT (utc_timestamp(6)))""",
    f"""CREATE TRIGGER chaos_born AFTER INSERT ON once_job FOR EACH ROW
        INSERT INTO chaos_history ({COLUMNS}) VALUES ({BORN}, 0, @chaos_pid)""",
    f"""CREATE TRIGGER chaos_note AFTER UPDATE ON once_job FOR EACH ROW
        IF OLD.status <> NEW.status OR OLD.fence <> NEW.fence OR NOT (OLD.claim <=> NEW.claim) THEN
        INSERT INTO chaos_history ({COLUMNS})
        VALUES ({CHANGED}, {ORPHAN}, @chaos_pid); END IF""",
)

BY_VENDOR = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MYSQL}


def install(server: Any) -> None:
    """Make the table and the triggers, on a connection past the proxy."""
    with server.connected() as line:
        cursor = line.cursor()
        for statement in BY_VENDOR[server.vendor]:
            cursor.execute(statement)
