"""Tasks under locks, for the tests of locks."""

from __future__ import annotations

from typing import Any

from django_once import task
from django_once.locks import guard
from django_once.models.lock import end_by_force
from django_once.sql.lines import close_idle, line
from tests.app.models import Note, Report


@task(lock="digest:{user_id}", takes_context=True)
def digest(context: Any, user_id: int) -> int:
    Note.objects.create(text=f"digest of {user_id} under {context.lock.name}")
    return int(context.lock.fence)


@task(lock="digest:{user_id}", if_held="fail")
def digest_or_fail(user_id: int) -> None:
    Note.objects.create(text=f"digest of {user_id}")


@task(lock="digest:{user_id}", if_held="wait")
def digest_in_time(user_id: int) -> None:
    Note.objects.create(text=f"digest of {user_id}")


@task(lock="digest:{user_id}", delivery="exactly_once", takes_context=True)
def digest_once(context: Any, user_id: int) -> int:
    Note.objects.create(text=f"digest of {user_id}")
    return int(context.lock.fence)


@task(lock="report", takes_context=True)
async def report(context: Any, body: str) -> int:
    await guard(Report.objects.all(), context.lock.fence).aupdate(body=body)
    return int(context.lock.fence)


@task(takes_context=True)
def without(context: Any) -> str:
    try:
        return str(context.lock)
    except AttributeError as error:
        return str(error)


@task(lock="stolen", delivery="exactly_once", takes_context=True)
def outlives_its_lock_once(context: Any) -> None:
    if context.lock.fence == 1:
        Note.objects.create(text="too late")
        context.lock.lost.set()


@task(lock="broken")
def loses_its_lock() -> None:
    with line("default") as own:
        end_by_force(own, "broken", "eve", "for a test")
    close_idle("default", 0.0)


@task(lock="task_lock:digest", if_held="wait")
def waits_for_a_pod() -> None:
    pass
