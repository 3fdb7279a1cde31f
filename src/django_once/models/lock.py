"""The lock: a named lease with a fence that only grows.

The row stays when the lock is released. Each verb is one statement under its guard, sent on the
connection it is given, which is not the caller's own: see `sql/lines.py`.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.db import models

from django_once.clock import Now
from django_once.models.fields import Moment, Name
from django_once.models.job.locked import let_next_go
from django_once.sql.locks import Standing, locks_on
from django_once.sql.repeat import repeated

HELD, LAPSED, FREE = "held", "lapsed", "free"
NOW = models.ExpressionWrapper(Now(), output_field=Moment())


class Lock(models.Model):
    """A named lease; the row stays when it is released, so that its fence never restarts."""

    name = Name(max_length=255, primary_key=True, db_default="")
    holder = Name(max_length=255, db_default="")
    nonce = models.UUIDField(null=True)
    fence = models.BigIntegerField(db_default=0)
    acquired_at = Moment(null=True)
    renewed_at = Moment(null=True)
    expires_at = Moment(null=True)
    released_at = Moment(null=True)
    released_by = models.CharField(max_length=255, db_default="")
    reason = models.CharField(max_length=255, db_default="")
    is_wanted = models.BooleanField(db_default=False)
    # Jobs wait for it: unlike a waiter in a process, they are told by the release alone.
    has_jobs = models.BooleanField(db_default=False)
    history = models.TextField(db_default="[]")

    class Meta:
        app_label = "once"
        db_table = "once_lock"
        permissions = [("release_lock", "Can release lock")]

    def __str__(self) -> str:
        return str(self.name)


def take(connection: Any, name: str, holder: str, nonce: UUID, seconds: float) -> Standing:
    """Take the lock if it is free; return how it stands, in the taker's hands or in another's.

    Asked again under the same nonce, the lease that the first asking took is the answer. Race: two
    find it free in one moment. Both write the one row, so the later of them finds it held.
    """
    locks = locks_on(connection)
    while True:
        taken = repeated(connection, lambda: locks.take(name, holder, nonce, seconds))
        if taken is not None:
            return taken
        standing = repeated(connection, lambda: locks.look(name))
        if standing is not None and standing.is_held:
            return standing
        # Its lease is over, or it was released a moment ago: the statement that takes it decides.
        repeated(connection, lambda: locks.take_over(name, holder, nonce, seconds))


def renew(connection: Any, name: str, nonce: UUID, seconds: float) -> bool:
    """Lengthen a lease that nobody took meanwhile; False when it is lost for good."""
    locks = locks_on(connection)
    return repeated(connection, lambda: locks.renew(name, nonce, seconds))


def release(connection: Any, name: str, nonce: UUID) -> bool:
    """Give back what was taken under this nonce; False when somebody ended it before."""
    locks = locks_on(connection)
    return _freed(connection, name, repeated(connection, lambda: locks.release(name, nonce)))


def was_released(connection: Any, name: str, fence: int) -> bool:
    """Return whether the holder itself gave back the lease of this fence: its answer was lost."""
    return locks_on(connection).was_released(name, fence)


def release_of(connection: Any, name: str, holder: str) -> bool:
    """Give back the lock if this holder has it."""
    locks = locks_on(connection)
    return _freed(connection, name, repeated(connection, lambda: locks.release_of(name, holder)))


def end_by_force(connection: Any, name: str, by: str, reason: str) -> bool:
    """Take the lock from whoever has it, for a person who says why; its holder finds it lost."""
    locks = locks_on(connection)
    ended = repeated(connection, lambda: locks.end_by_force(name, by, reason))
    return _freed(connection, name, ended)


def _freed(connection: Any, name: str, has_jobs: bool | None) -> bool:
    """Let a job go that waits for a lock which was released; return whether it was."""
    if has_jobs:
        repeated(connection, lambda: let_next_go(connection, name))
    return has_jobs is not None


def want(connection: Any, name: str) -> bool:
    """Ask to be told of the release; False when there is nothing to wait for."""
    locks = locks_on(connection)
    return repeated(connection, lambda: locks.want(name))


def look(connection: Any, name: str) -> Standing | None:
    """Return how a lock stands; None when it was never taken."""
    return locks_on(connection).look(name)


def known(database: str, *, name: str = "", only_held: bool = False) -> list[Lock]:
    """Return the locks, those taken last first, each with the moment it was asked (`now`)."""
    found = Lock.objects.using(database).annotate(now=NOW)
    if name:
        found = found.filter(name=name)
    if only_held:
        found = found.filter(released_at=None, nonce__isnull=False)
    return list(found.order_by("-acquired_at", "name"))


def state_of(lock: Lock, now: Any) -> str:
    """Return the word for where a lock stands; a lapsed one is free, and names its last holder."""
    if lock.nonce is None or lock.released_at is not None or lock.expires_at is None:
        return FREE
    return HELD if lock.expires_at >= now else LAPSED


def holders_of(lock: Lock) -> list[dict[str, Any]]:
    """Return who has held a lock, the last first, as far as the row remembers."""
    return list(reversed(json.loads(lock.history)))
