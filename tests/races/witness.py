"""A log that the database writes by itself: each change of a job's status, claim or fence.

The statements under test know nothing of it. A row's changes stand in it in their order, since
whoever writes there holds the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import connection

CHANGED = {
    "postgresql": "OLD.{0} IS DISTINCT FROM NEW.{0}",
    "mysql": "NOT (OLD.{0} <=> NEW.{0})",
    "sqlite": "OLD.{0} IS NOT NEW.{0}",
}
SERIAL = {
    "postgresql": "bigserial PRIMARY KEY",
    "mysql": "bigint AUTO_INCREMENT PRIMARY KEY",
    "sqlite": "integer PRIMARY KEY AUTOINCREMENT",
}
INSERT = (
    "INSERT INTO once_witness (job, before_status, status, before_claim, claim, before_fence, "
    "fence) VALUES (NEW.id, OLD.status, NEW.status, OLD.claim, NEW.claim, OLD.fence, NEW.fence);"
)
ENDED = ("SUCCESSFUL", "FAILED")


class Change(NamedTuple):
    """What a statement made of a job."""

    job: str
    before_status: str
    status: str
    before_claim: str | None
    claim: str | None
    before_fence: int
    fence: int

    @property
    def is_claim(self) -> bool:
        return self.status == "RUNNING"

    @property
    def ends_attempt(self) -> bool:
        return self.before_status == "RUNNING"


@contextmanager
def witness() -> Iterator[None]:
    """Let the database log what becomes of jobs, inside the block."""
    vendor = connection.vendor
    moved = " OR ".join(CHANGED[vendor].format(name) for name in ("status", "claim", "fence"))
    run(
        f"CREATE TABLE once_witness (id {SERIAL[vendor]}, job varchar(36), "
        "before_status varchar(10), status varchar(10), before_claim varchar(36), "
        "claim varchar(36), before_fence bigint, fence bigint)"
    )
    try:
        if vendor == "postgresql":
            run(
                "CREATE FUNCTION once_witness() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {INSERT} RETURN NULL; END $$",
                "CREATE TRIGGER once_witness AFTER UPDATE ON once_job FOR EACH ROW "
                f"WHEN ({moved}) EXECUTE FUNCTION once_witness()",
            )
        elif vendor == "mysql":
            run(
                "CREATE TRIGGER once_witness AFTER UPDATE ON once_job FOR EACH ROW "
                f"BEGIN IF {moved} THEN {INSERT} END IF; END"
            )
        else:
            run(
                "CREATE TRIGGER once_witness AFTER UPDATE ON once_job "
                f"WHEN {moved} BEGIN {INSERT} END"
            )
        yield
    finally:
        on_table = " ON once_job" if vendor == "postgresql" else ""
        run(f"DROP TRIGGER IF EXISTS once_witness{on_table}")
        if vendor == "postgresql":
            run("DROP FUNCTION IF EXISTS once_witness()")
        run("DROP TABLE once_witness")


def run(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def seen() -> list[Change]:
    """Return what was logged, in order; ids as hexadecimal digits on every database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT job, before_status, status, before_claim, claim, before_fence, fence "
            "FROM once_witness ORDER BY id"
        )
        return [as_change(row) for row in cursor.fetchall()]


def as_change(row: Any) -> Change:
    job, before_status, status, *claims, before_fence, fence = row
    plain = [None if one is None else one.replace("-", "") for one in claims]
    return Change(job.replace("-", ""), before_status, status, *plain, before_fence, fence)


def breaches(changes: list[Change]) -> list[str]:
    """Return a line for each change that breaks a sentence of the protocol."""
    last: dict[str, Change] = {}
    claims: set[tuple[str, str | None]] = set()
    found = []
    for change in changes:
        before = last.get(change.job)
        last[change.job] = change
        if before and before[2::2] != change[1::2][:3]:
            found.append(f"A change was not seen between {before} and {change}.")
        if change.before_status in ENDED:
            found.append(f"It had ended before: {change}.")
        elif change.is_claim and change.before_status != "READY":
            found.append(f"It was held by two attempts: {change}.")
        elif change.is_claim and change.fence != change.before_fence + 1:
            found.append(f"Its fence did not grow by one: {change}.")
        elif change.is_claim and (change.job, change.claim) in claims:
            found.append(f"A nonce served twice: {change}.")
        elif change.ends_attempt and change.claim not in (None, change.before_claim):
            found.append(f"An attempt ended under another nonce: {change}.")
        if change.is_claim:
            claims.add((change.job, change.claim))
    return found
