"""Enqueuing what must be unique: the job, or the one that has its name already.

Whoever has the name is looked for first, by a plain read: a job whose row an `exactly_once` body
holds would make an INSERT of the same name wait for the body's end.

Race: two enqueue the same name at once. The unique index lets one INSERT through; the other gives
way without an error, and finds the first. It waits for the first one's transaction, since whether
the name is taken is known only when that ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django_once import sql
from django_once.errors import NotUnique, OnceError
from django_once.models.job.row import Job
from django_once.sql.repeat import repeated
from django_once.sql.unique import Namesake, UniqueStatements
from django_once.sql.values import NewJob, Stored

# Between two looks a job may end and another begin; not for ever.
TIMES: Final = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """The job that stands for a wish, and what it is: new, or there before."""

    disposition: str
    job: UUID
    stored: Stored | None = None


def enqueue_unique(database: str, job: NewJob, on_conflict: str) -> Kept:
    """Store this job unless another has its name; return the one that has it.

    A job that waits takes the new one's arguments and time with "replace". With "raise" nothing is
    stored, and the caller's transaction goes on.
    """
    statements = UniqueStatements(sql.on(database))
    connection = statements.statements.connection
    for _ in range(TIMES):
        kept = repeated(connection, partial(_kept, statements, job, on_conflict))
        if kept is not None:
            return kept
    raise OnceError(
        f"Job {job.id} of {job.task} is unique, and the job that has its name could not be read: "
        "a transaction at REPEATABLE READ does not see what was enqueued after it began."
    )


def enqueue_each_unique(
    database: str, job: NewJob, members: Sequence[tuple[UUID, str, str]],
    terms: Sequence[Mapping[str, Any]], on_conflict: str,
) -> list[Kept]:  # fmt: skip
    """Do what `enqueue_unique` does for each, in one transaction; return them in their order.

    In the order of their hashes, so that two who enqueue the same names never wait crosswise.
    """
    statements = UniqueStatements(sql.on(database))
    each = [
        replace(job, id=id, args=args, kwargs=kwargs, **{**own, **_apart(job, place)})
        for place, ((id, args, kwargs), own) in enumerate(zip(members, terms, strict=True))
    ]
    order = sorted(range(len(each)), key=lambda n: (each[n].unique_hash or "", n))
    kept: dict[int, Kept] = {}
    with statements.statements.together():
        if on_conflict == "existing":
            ordered = [members[n] for n in order], [terms[n] for n in order]
            repeated(
                statements.statements.connection,
                lambda: statements.insert_many(job, *ordered),
            )
            kept = _already(statements, each, order)
        for n in order:
            if n not in kept:
                kept[n] = enqueue_unique(database, each[n], on_conflict)
    return [kept[n] for n in range(len(each))]


def _apart(job: NewJob, place: int) -> dict[str, Any]:
    """Return when one of a bulk is due that is spread over a time."""
    if not job.step:
        return {}
    later = timedelta(seconds=place * job.step)
    return {"step": 0.0, "run_after": later if job.run_after is None else job.run_after + later}


def _already(
    statements: UniqueStatements, each: Sequence[NewJob], order: Sequence[int]
) -> dict[int, Kept]:
    """Return those that were stored, or whose name somebody has for certain."""
    kept = {}
    for begin in range(0, len(order), 500):
        part = order[begin : begin + 500]
        found = statements.namesakes(sorted({str(each[n].unique_hash) for n in part}))
        for n in part:
            there = found.get(str(each[n].unique_hash))
            if there is not None and there.id == each[n].id:
                kept[n] = Kept("added", there.id)
            elif there is not None and not there.is_over:
                kept[n] = Kept(_standing(there), there.id)
    return kept


def _kept(statements: UniqueStatements, job: NewJob, on_conflict: str) -> Kept | None:
    """Return the job that stands for the wish, or None when it must be looked at again."""
    assert job.unique_hash is not None
    there = statements.namesakes([job.unique_hash]).get(job.unique_hash)
    if there is None:
        stored = statements.insert(job)
        return Kept("added", job.id, stored) if stored is not None else None
    if there.is_over and statements.let_go(there.id, job.unique_hash):
        return None
    if on_conflict == "raise":
        raise NotUnique(
            f"Job {there.id} of {job.task} is {_standing(there)} and has this name already; "
            "nothing was enqueued.",
            str(there.id),
        )
    if on_conflict == "replace" and there.status == Job.READY:
        return Kept("replaced", there.id) if statements.rewrite(there.id, job) else None
    return Kept(_standing(there), there.id)


def _standing(there: Namesake) -> str:
    return {Job.READY: "waiting", Job.RUNNING: "running"}.get(there.status, "ended")
