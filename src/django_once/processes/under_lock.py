"""Attempts under a lock: `@task(lock="daily-digest:{user_id}", if_held="skip")`.

The lock is taken before the body is called, and before its transaction where it has one, and given
back after the attempt's end is decided. A job that meets a held lock is over (`skip`), fails and is
tried again by its policy (`fail`), or goes back without being charged and waits for the release
(`wait`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from django_once import declare, events
from django_once.definitions.options import SKIP, WAIT
from django_once.errors import LockHeld, LockLost
from django_once.locks.holding import UNKNOWN, Held
from django_once.locks.taking import lock, named
from django_once.models import Job
from django_once.processes import ends
from django_once.processes.ends import Body, Ended
from django_once.sql.values import LOCK, LOCKED, SKIPPED, Outcome


@contextmanager
def under_lock(body: Body) -> Iterator[Ended | None]:
    """Hold the lock that a task asks for; yield the end of an attempt that does not get it."""
    refused = taken(body)
    try:
        yield refused
    finally:
        given_back(body)


def needs_lock(body: Body) -> bool:
    """Return whether a body's task asks for a lock."""
    return declare.option_of(body.task, "lock") is not None


def taken(body: Body) -> Ended | None:
    """Take the lock of a body's task; return the end of the attempt when that cannot be."""
    said = declare.options_of(body.task)
    template = said.get("lock")
    if template is None:
        return None
    settings = body.backend.settings
    name = ""
    try:
        name = named(template, body.task.func, body.args, body.kwargs)
        taking = lock(name, settings.lease, using=settings.database)
        body.running.held = taking.acquire()
    except LockHeld as error:
        return _met(body, name, error, said.get("if_held", SKIP))
    except UNKNOWN:
        return ends.given_back(body.attempt)
    except Exception as error:  # noqa: BLE001 - a name is built from arguments, whatever they are
        return ends.failed(body, error)
    return None


def given_back(body: Body) -> None:
    """Give back the lock, if this attempt has one; what became of the attempt stays."""
    held: Held | None = body.running.held
    if held is None:
        return
    try:
        held.release()
    except LockLost as error:
        events.lock_lost(held.name, held.fence, str(error))
    except DatabaseError as error:
        events.lock_unanswered(held.name, held.fence, "released", error)


def refuse_if_lost(body: Body) -> None:
    """Raise, before anything of it is kept, when a body has outlived its lock."""
    why = body.running.why_stop_for_lock()
    if why is not None:
        raise why


def _met(body: Body, name: str, error: LockHeld, if_held: str) -> Ended:
    if if_held == SKIP:
        events.task_lock_skipped(body.attempt.task)
        return ends.over(body.attempt, SKIPPED, error, ran=body.running.seconds)
    if if_held == WAIT:
        # It holds no slot meanwhile, and is let go by whoever releases the lock.
        outcome = Outcome(
            id=body.attempt.id, claim=body.attempt.claim, key=body.attempt.key,
            status=Job.READY, reason=LOCKED, blocked_by=LOCK + name, given_back=True,
        )  # fmt: skip
        return Ended(body.attempt, outcome)
    return ends.failed(body, error)
