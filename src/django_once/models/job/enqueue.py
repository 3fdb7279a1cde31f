"""Putting jobs there: a job exists if and only if the transaction that enqueued it committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django_once import sql
from django_once.sql.repeat import repeated
from django_once.sql.values import NewJob, Stored


def enqueue(database: str, job: NewJob) -> Stored:
    """Store one job in the caller's transaction."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: statements.insert(job))


def enqueue_many(
    database: str, job: NewJob, members: Sequence[tuple[UUID, str, str]],
    terms: Sequence[Mapping[str, Any]] = (),
) -> Stored:  # fmt: skip
    """Store many jobs, which differ in id, args, kwargs and their terms only, in one statement."""
    statements = sql.on(database)
    return repeated(statements.connection, lambda: statements.insert_many(job, members, terms))
