"""The life of one attempt, as a pipeline: load, enter, call, decide; then somebody settles.

Nothing loops here. `run` calls a user's function, which may do anything, and returns what is to
become of the job; only `exactly_once` ends its job by itself, since its outcome commits with the
body's own writes. Whatever is raised on the way, also by receivers of signals, becomes an end:
a thread that runs bodies never dies of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async

from django_once import compat, context, events, payload, results, surroundings, tracing
from django_once.backend import DatabaseBackend
from django_once.crash import crash_point
from django_once.definitions import registry
from django_once.definitions.options import AT_MOST_ONCE, EXACTLY_ONCE
from django_once.errors import Cancelled, Expired
from django_once.models import Job
from django_once.models.execution.look import due_moment_of
from django_once.models.job.settle import start, what_became
from django_once.processes import ends, hygiene, one_transaction, onward, traced
from django_once.processes.ends import Body, Ended
from django_once.processes.persistence import LOST, Persistence
from django_once.processes.running import Running
from django_once.processes.under_lock import (
    given_back,
    needs_lock,
    refuse_if_lost,
    taken,
    under_lock,
)
from django_once.sql.values import CANCELLED, EXPIRED, Attempt
from django_once.steps import Steps

Known = TypeVar("Known")

# To look at a function takes longer than to call a short one.
_is_async = lru_cache(maxsize=4096)(iscoroutinefunction)


def run(backend: DatabaseBackend, attempt: Attempt, running: Running | None = None) -> Ended:
    """Call the body of this attempt, in this thread, and return how it ended."""
    body = _entered(backend, attempt, running or Running(attempt))
    if isinstance(body, Ended):
        return body
    if not needs_lock(body):
        return _with_last_words(body, _run(body))
    with under_lock(body) as refused:
        return _with_last_words(body, refused or _run(body))


def _run(body: Body) -> Ended:
    return _unfollowed(body) if tracing.tracer is None else traced.run(body, _unfollowed)


def _unfollowed(body: Body) -> Ended:
    if body.attempt.delivery == EXACTLY_ONCE:
        return one_transaction.run(body, _called)
    try:
        return ends.succeeded(body, _called(body))
    except BaseException as exception:  # noqa: BLE001 - a body may raise anything
        ends.let_a_person_interrupt(exception)
        return ends.failed(body, exception)


async def arun(backend: DatabaseBackend, attempt: Attempt, running: Running | None = None) -> Ended:
    """Await the body of this attempt, in this event loop, and return how it ended.

    Each attempt has a thread of its own for the sync code it awaits, hence a connection of its
    own: two bodies at once would else share one transaction.
    """
    body = await _aentered(backend, attempt, running or Running(attempt))
    if isinstance(body, Ended):
        return body
    if not needs_lock(body):
        return _with_last_words(body, await _arun(body))
    loop = asyncio.get_running_loop()
    refused = await loop.run_in_executor(None, taken, body)
    try:
        return _with_last_words(body, refused or await _arun(body))
    finally:
        await loop.run_in_executor(None, given_back, body)


async def _arun(body: Body) -> Ended:
    if tracing.tracer is None:
        return await _aunfollowed(body)
    return await traced.arun(body, _aunfollowed)


async def _aunfollowed(body: Body) -> Ended:
    try:
        async with _a_thread_of_its_own():
            value = await _awaited(body)
            refuse_if_lost(body)
            return ends.succeeded(body, value)
    except BaseException as exception:  # noqa: BLE001 - a body may raise anything
        return ends.failed(body, exception)


def _with_last_words(body: Body, ended: Ended) -> Ended:
    """Return an end with how far its body came, if it told and nobody wrote it down."""
    told = body.running.take_told()
    return ended if told is None else replace(ended, told=told)


@asynccontextmanager
async def _a_thread_of_its_own() -> AsyncIterator[None]:
    """Run the sync code that is awaited inside in one thread, and close what it connected to."""
    async with ThreadSensitiveContext() as place:
        try:
            yield
        finally:
            # Where nothing sync was awaited, no thread was made.
            if place in SyncToAsync.context_to_thread_executor:
                await sync_to_async(hygiene.drop_all, thread_sensitive=True)()


def _called(body: Body) -> Any:
    """Return what the function returns; one that is async is awaited in a loop of this thread."""
    mark = surroundings.enter(body.attempt)
    try:
        if _is_async(body.task.func):
            value = async_to_sync(_awaited)(body)
        else:
            value = body.task.func(*body.args, **body.kwargs)
    finally:
        surroundings.leave(mark)
    refuse_if_lost(body)
    return value


async def _awaited(body: Body) -> Any:
    """Return what the coroutine returns; it is cancelled when it is asked to end."""
    running, loop, task = body.running, asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel() -> None:
        # In the loop's own thread, so between two steps of the body, or after its last.
        if running.interrupt is not None:
            task.cancel()

    running.interrupt = partial(loop.call_soon_threadsafe, cancel)
    timer, mark = None, surroundings.enter(body.attempt)
    if running.attempt.timeout:
        timer = loop.call_later(running.attempt.timeout, running.ask_for_time)
    try:
        if running.asked is not None:
            raise running.asked
        return await body.task.func(*body.args, **body.kwargs)
    finally:
        running.interrupt = None
        surroundings.leave(mark)
        if timer is not None:
            timer.cancel()
        while task.cancelling():
            task.uncancel()


def is_awaitable(attempt: Attempt) -> bool:
    """Return whether this attempt's body belongs into an event loop.

    An `exactly_once` body does not: called from a thread, what it awaits comes back to that
    thread, so all of it writes in one transaction.
    """
    if attempt.delivery == EXACTLY_ONCE:
        return False
    task = registry.find(attempt.task)
    return task is not None and _is_async(task.func)


def needs_start(attempt: Attempt) -> bool:
    """Return whether the start must be on record before the body is called.

    For `at_most_once` a claim is not a start. A suspect runs alone, and only a recorded start
    tells a sweep that it was this one.
    """
    return attempt.delivery == AT_MOST_ONCE or attempt.is_suspect


def has_started(backend: DatabaseBackend, attempt: Attempt) -> bool:
    """Commit that this body is about to be called; False when somebody else has the job.

    When the answer is lost this process asks again: a start on record under this very claim is its
    own, and it has called nothing yet.
    """
    database = backend.settings.database
    crash_point("start.sending")
    try:
        has_begun = start(database, attempt)
    except LOST:
        persistence = Persistence(database, f"start of {attempt.id}")
    else:
        crash_point("start.committed")
        return has_begun
    while True:
        persistence.wait()
        answered, state = persistence.tried(
            lambda: start(database, attempt) or what_became(database, [(attempt.id, attempt.claim)])
        )
        if answered:
            return state is True or (isinstance(state, dict) and state[attempt.id] == "held")


def _entered(backend: DatabaseBackend, attempt: Attempt, running: Running) -> Body | Ended:
    """Return what is to be called, or the end of an attempt that must not begin."""
    try:
        task = backend.task_of(attempt.task, attempt.queue, attempt.priority)
    except compat.TaskResultDoesNotExist:
        return ends.unknown(attempt)
    refused = _refused(attempt)
    if refused is not None:
        return refused
    read = partial(_read, backend, task, attempt)
    due = partial(due_moment_of, backend.settings.database, attempt.id)
    try:
        events.attempt_started(type(backend), attempt, read)
        args, kwargs = _arguments(backend, task, running, read, due)
    except LOST:
        return ends.given_back(attempt)
    except BaseException as exception:  # noqa: BLE001 - SQL can enqueue what no encoder of ours wrote
        ends.let_a_person_interrupt(exception)
        return ends.failed(Body(backend, attempt, task, [], {}, running), exception)
    return Body(backend, attempt, task, args, kwargs, running)


async def _aentered(backend: DatabaseBackend, attempt: Attempt, running: Running) -> Body | Ended:
    """Do what `_entered` does: in this event loop, unless the database must be asked for it."""
    task = registry.find(attempt.task)
    if not events.start_is_heard() and not (task and task.takes_context):
        return _entered(backend, attempt, running)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, _entered_apart, backend, attempt, running)


def _entered_apart(backend: DatabaseBackend, attempt: Attempt, running: Running) -> Body | Ended:
    try:
        return _entered(backend, attempt, running)
    finally:
        hygiene.clean()


def _arguments(
    backend: DatabaseBackend, task: compat.AnyTask, running: Running,
    read: Callable[[], compat.AnyResult], due: Callable[[], datetime | None],
) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
    """Return what the function is called with, its context first if it takes one."""
    attempt = running.attempt
    args, kwargs = payload.decode(attempt.args), payload.decode(attempt.kwargs)
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise TypeError("The row's args are no list, or its kwargs no object: SQL wrote them.")
    if not task.takes_context:
        return args, kwargs
    if _is_async(task.func):
        # In an event loop nothing can be asked of the database, so it is asked before.
        read, due = partial(_as_it_is, read()), partial(_as_it_is, due())
    given = context.Context(
        attempt, read, running.why_stop, lambda: running.held, due,
        partial(onward.reschedule, backend, task, running), partial(onward.stop, task, running),
        Steps(backend.settings.database, attempt, backend.settings.max_result), running.tell,
    )  # fmt: skip
    return [given, *args], kwargs


def _as_it_is(known: Known) -> Known:
    return known


def _refused(attempt: Attempt) -> Ended | None:
    """Return the end of an attempt that must not begin."""
    if attempt.cancel_requested:
        error: Exception = Cancelled("The job was cancelled before it started.")
        return ends.over(attempt, CANCELLED, error)
    if attempt.is_expired:
        error = Expired("The job's time was over before it could start.")
        return ends.over(attempt, EXPIRED, error)
    return None


def _read(backend: DatabaseBackend, task: compat.AnyTask, attempt: Attempt) -> compat.AnyResult:
    job = Job.objects.using(backend.settings.database).filter(pk=attempt.id).first()
    if job is None:
        raise compat.TaskResultDoesNotExist(f"The row of job {attempt.id} was deleted meanwhile.")
    return results.of_attempt(task, job, attempt)
