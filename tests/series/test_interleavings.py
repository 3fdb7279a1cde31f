"""Every order in which the runs of a series, and the people who replace it, can come.

The tree of all moves is walked on the real statements: each move is made inside a savepoint, and
undone before the next one is tried in its place. After each, the books of the series must hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from django_once.models import Job
from django_once.models.job.expire import expire_dead
from django_once.models.series.add import QUEUE_ONE
from django_once.sql.values import Attempt
from tests.jobs import DATABASE, a_worker, claim
from tests.series import moves
from tests.series.moves import KEY, series

pytestmark = pytest.mark.django_db

DEPTH = int(os.environ.get("ONCE_TEST_MOVES", "3"))
EVERY = 1000.0


@dataclass(frozen=True)
class World:
    """What has happened so far: who runs, who is present, and what the present one wished."""

    runs: tuple[Attempt, ...] = ()
    present: UUID | None = None
    generation: int = 0
    is_stopped: bool = False
    path: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Move:
    """One thing that may happen now."""

    name: str
    make: Callable[[], World]


def moves_from(world: World) -> Iterator[Move]:
    """Yield what may happen next."""
    yield Move("claim", lambda: after_claim(world))
    yield Move("add", lambda: after_wish(world, moves.add(every=EVERY)))
    yield Move("replace", lambda: after_wish(world, moves.replace(every=EVERY)))
    yield Move("queue one", lambda: after_wish(world, moves.replace(QUEUE_ONE, every=EVERY)))
    yield Move("stop", lambda: after_stop(world))
    for number, attempt in enumerate(world.runs):
        for end in (succeed, fail, moves.try_again, moves.give_back):
            yield Move(f"{end.__name__} {number}", lambda a=attempt, e=end: after_end(world, a, e))
        yield Move(f"ask to stop {number}", lambda a=attempt: after_last_end(world, a))
        yield Move(f"crash {number}", lambda a=attempt: after_crash(world, a))
        yield Move(f"crash, and come too late {number}", lambda a=attempt: after_pause(world, a))


def succeed(attempt: Attempt) -> bool:
    """End well; what comes next is due at once, so that it can run in this walk."""
    return moves.succeed(attempt, after=0.0)


def fail(attempt: Attempt) -> bool:
    return moves.fail(attempt, after=0.0)


def after_claim(world: World) -> World:
    found = claim(a_worker())
    assert len(found) <= 1, "Two jobs of one key were ready at once."
    assert all(attempt.id == world.present for attempt in found)
    return changed(world, runs=(*world.runs, *found))


def after_wish(world: World, placed: moves.Placed) -> World:
    if placed.disposition in ("waiting", "running"):
        assert placed.job == world.present
        return world
    return changed(world, present=placed.job, generation=world.generation + 1, is_stopped=False)


def after_stop(world: World) -> World:
    moves.stop()
    return changed(world, present=None, generation=world.generation + 1, is_stopped=True)


def after_end(world: World, attempt: Attempt, end: Callable[[Attempt], bool]) -> World:
    assert end(attempt), "An attempt that nobody else ended was superseded."
    left = tuple(one for one in world.runs if one is not attempt)
    comes_back = end in (moves.try_again, moves.give_back)
    if attempt.id != world.present or comes_back:
        return changed(world, runs=left)
    # The present run has ended: it names the next.
    return changed(world, runs=left, present=series().job, generation=world.generation + 1)


def after_last_end(world: World, attempt: Attempt) -> World:
    assert moves.succeed(attempt, stops=True)
    left = tuple(one for one in world.runs if one is not attempt)
    if attempt.id != world.present:
        return changed(world, runs=left)
    return changed(world, runs=left, present=None, generation=world.generation + 1, is_stopped=True)


def after_crash(world: World, attempt: Attempt) -> World:
    """Its worker is gone: a sweep takes the job, which comes back if it is the present one."""
    left = tuple(one for one in world.runs if one is not attempt)
    expire_dead(DATABASE, holder_of(attempt), [(attempt.id, attempt.claim)], "was killed")
    return changed(world, runs=left)


def after_pause(world: World, attempt: Attempt) -> World:
    """Its worker wakes after the sweep, and wants to end what is no longer its own."""
    there = after_crash(world, attempt)
    assert not succeed(attempt), "A late outcome was accepted."
    return there


def holder_of(attempt: Attempt) -> UUID:
    worker = Job.objects.get(pk=attempt.id).worker
    assert worker is not None
    return worker


def changed(world: World, **said: Any) -> World:
    known = {name: getattr(world, name) for name in World.__dataclass_fields__}
    return World(**{**known, **said})


def check(world: World) -> None:
    """Ask the rows whether they are as this world says."""
    row = series()
    assert (row.job, row.generation) == (world.present, world.generation), world.path
    assert (row.cancelled_at is not None) == world.is_stopped, world.path
    jobs = list(Job.objects.filter(key=KEY, status__in=(Job.READY, Job.RUNNING)))
    waiting = [job.id for job in jobs if job.status == Job.READY]
    assert len(waiting) <= 1, world.path
    running = {attempt.id for attempt in world.runs}
    assert {job.id for job in jobs if job.status == Job.RUNNING} == running, world.path
    if world.present is not None:
        assert world.present in {*waiting, *running}, f"A chain was lost: {world.path}"
        assert waiting in ([], [world.present]), f"A stale run named its own: {world.path}"
    else:
        assert waiting == [], world.path
    blocked = [job for job in jobs if job.blocked_by]
    assert not blocked or running, f"It waits for nobody: {world.path}"


def walk(world: World, depth: int) -> int:
    """Make every move from here, and every move from there; return how many."""
    made = 0
    for move in moves_from(world):
        with transaction.atomic():
            there = changed(move.make(), path=(*world.path, move.name))
            check(there)
            made += 1
            if depth > 1:
                made += walk(there, depth - 1)
            transaction.set_rollback(True)
    return made


def test_in_whatever_order_things_happen_only_the_present_run_names_the_next():
    placed = moves.add(every=EVERY)
    first = World(present=placed.job, generation=1)

    made = walk(first, DEPTH)

    assert made >= 5**DEPTH


def test_the_walk_finds_a_stale_successor(monkeypatch):
    from django_once.models.series import settle

    monkeypatch.setattr(settle.Ending, "is_present", property(lambda self: True))
    monkeypatch.setattr(settle.SeriesStatements, "move", lambda self, stand, job: True)

    with pytest.raises(AssertionError):
        walk(World(present=moves.add(every=EVERY).job, generation=1), 3)
