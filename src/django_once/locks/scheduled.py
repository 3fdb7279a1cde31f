"""The lock of one scheduled task among pods that all run the schedule.

    process = process_id()
    if acquire_task_lock(process, "daily-digest:abc-123"):
        try:
            send_digest("abc-123")
        finally:
            release_task_lock(process, "daily-digest:abc-123")

This lock is not renewed: it ends after its timeout, also when its holder never comes back. A lock
keeps two runs from overlapping and nothing else: a pod whose clock is late runs the same moment
again when the first run was short. A schedule fires once for each due moment, and needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django_once import clock, events, identity
from django_once.errors import LockHeld, LockLost
from django_once.locks.place import checked_holder, checked_lease, checked_name, place_of
from django_once.locks.renewal import renewal_of
from django_once.locks.taking import lock, take_for
from django_once.sql.locks import Standing

PREFIX: Final = "task_lock:"
TIMEOUT: Final = 300

process_id = identity.process_id


def acquire_task_lock(process_id: str, task_name: str, timeout_seconds: float = TIMEOUT) -> bool:
    """Try to acquire the lock for running a specific task; return whether it is this process's.

    A lock whose timeout is over is taken. Who holds it already is refused like everybody else.
    Raises what the database raises: an error is no sign that somebody else runs the task.
    """
    name, holder = checked_name(PREFIX + checked_name(task_name)), checked_holder(process_id)
    lease = checked_lease(timeout_seconds, "timeout_seconds")
    if take_for(place_of(None), name, holder, lease):
        events.task_lock_acquired(task_name)
        return True
    events.task_lock_skipped(task_name)
    return False


def release_task_lock(process_id: str, task_name: str) -> None:
    """Release the lock for a task, which this process must hold.

    Raises LockLost when somebody else holds it, or held it since. Twice is not too often.
    """
    from django_once.models import lock as rows

    name, holder = checked_name(PREFIX + checked_name(task_name)), checked_holder(process_id)
    place = place_of(None)
    with place.connection() as connection:
        was_held = rows.release_of(connection, name, holder)
        standing = None if was_held else rows.look(connection, name)
    renewal_of(place).tidy()
    if was_held:
        events.task_lock_released(task_name)
    elif standing is None or standing.holder != holder:
        raise LockLost(
            f"{holder!r} does not hold lock {name!r}, so it cannot release it: {_told(standing)}."
        )


def run_scheduled_job(
    schedule_record: Any, execute: Callable[[Any], Any], timeout_seconds: float = TIMEOUT
) -> bool:
    """Call `execute(schedule_record)` unless its task runs on another pod; return whether it ran.

    The record has a `name` and an `id`. The lock is renewed while the function runs and released
    when it ends, so `timeout_seconds` is how long it outlives a dead pod.
    """
    task_name = f"{schedule_record.name}:{schedule_record.id}"
    taking = lock(PREFIX + task_name, lease=checked_lease(timeout_seconds, "timeout_seconds"))
    try:
        held = taking.__enter__()
    except LockHeld:
        events.task_lock_skipped(task_name)
        return False
    events.task_lock_acquired(task_name)
    try:
        events.task_lock_running(schedule_record.name)
        execute(schedule_record)
    except BaseException as exception:
        taking.__exit__(type(exception), exception, exception.__traceback__)
        raise
    taking.__exit__(None, None, None)
    events.task_lock_released(held.name.removeprefix(PREFIX))
    return True


def _told(standing: Standing | None) -> str:
    if standing is None:
        return "nobody ever took it"
    until = clock.from_database(standing.expires_at)
    verb = "holds" if standing.is_held else "held"
    return f"{standing.holder!r} {verb} it until {until:%Y-%m-%d %H:%M:%S}"
