"""Moving schedules on and recording their due moments: sentence 4, within the caller's transaction.

Either all of it happens or none: a schedule that moved meanwhile, or a moment that has a record,
undoes what the caller has done, with the jobs it enqueued.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_once import sql
from django_once.errors import OnceError
from django_once.sql import schedules
from django_once.sql.schedules import Move, Record


class AlreadyFired(OnceError):
    """A due moment that somebody else has recorded, or a schedule that was moved meanwhile."""


def move(database: str, moves: Sequence[Move], records: Sequence[Record]) -> None:
    """Move these schedules on and record these due moments; raise AlreadyFired otherwise."""
    statements = sql.on(database)
    if schedules.move(statements, moves) != len(moves):
        raise AlreadyFired("A schedule was moved or edited meanwhile; its firing is decided anew.")
    record(database, records)


def record(database: str, records: Sequence[Record]) -> None:
    """Record these due moments; raise AlreadyFired when one of them has a record."""
    if schedules.record(sql.on(database), records) != len(records):
        raise AlreadyFired("A due moment was recorded before; the others are decided anew.")
