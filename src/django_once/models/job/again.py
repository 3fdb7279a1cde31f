"""Trying again by a person's will: an ended job gets fresh budgets and a place in the ready index.

Neither its fence nor its nonce goes back. So an attempt that still runs somewhere, although its
job was ended for it, stays superseded, and what it writes outside is refused by the larger fence.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final
from uuid import UUID

from django_once import sql
from django_once.models.series.hold import hold
from django_once.sql.repeat import repeated
from django_once.sql.statements import Statements

BATCH: Final = 500


def retry(database: str, ids: Iterable[UUID]) -> int:
    """Make these ended jobs ready, whatever their end was; return how many had ended.

    Their history stays, their expiry does not, and a uniqueness that ended is not taken again. A
    job that its series has left behind stays ended: another stands in its place.
    """
    statements = sql.on(database)
    wanted = list(dict.fromkeys(ids))
    ready = 0
    for start in range(0, len(wanted), BATCH):
        batch = partial(_retry_free, statements, wanted[start : start + BATCH])
        ready += repeated(statements.connection, batch)
    return ready


def _retry_free(statements: Statements, ids: list[UUID]) -> int:
    with statements.together():
        series = hold(statements, ids)
        wanted = [id for id in ids if id not in series.busy | series.superseded]
        free = set(statements.free(wanted)) if wanted else set()
        return statements.retry([id for id in wanted if id in free]) if free else 0
