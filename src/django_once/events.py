"""Every fact that is told: Django's three signals, and what the log says of an attempt.

Django itself listens to its signals to write its log lines. Where nobody else does, the same line
is written here, without the result, which would cost a query for each job; and where no handler
would take the line, nothing is written at all. Receivers are other people's code: one that raises
is told and changes nothing, but at enqueue, where Django lets it reach the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any, Final
from weakref import ReferenceType

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils.log import RequireDebugTrue

from django_once import compat, counting, signals
from django_once.compat import (
    AnyResult,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)

contract: Final = logging.getLogger(compat.LOGGER)
ours: Final = logging.getLogger("django_once")


def _djangos_own(signal: Any) -> int:
    """Return how many receivers are Django's; those of others may have come before this module."""
    known = [one for _, one, *_ in signal.receivers]
    functions = [one() if isinstance(one, ReferenceType) else one for one in known]
    written_in = f"{compat.LOGGER}.signals"
    return sum(getattr(function, "__module__", "") == written_in for function in functions)


_DJANGOS_OWN: Final = {
    signal: _djangos_own(signal) for signal in (task_enqueued, task_started, task_finished)
}

_LINE: Final = "Task id=%s path=%s state=%s"
_told_unknown: set[str] = set()


def enqueue_is_heard() -> bool:
    """Return whether anybody will look at each job that is enqueued."""
    return _has_receivers(task_enqueued) or _is_written(logging.DEBUG)


def start_is_heard() -> bool:
    """Return whether the result of each attempt that starts must be read for somebody."""
    return _has_receivers(task_started)


def success_is_heard() -> bool:
    """Return whether anybody will look at each job that succeeds."""
    return _has_receivers(task_finished) or _is_written(logging.INFO)


def job_enqueued(sender: type, result: AnyResult) -> None:
    """Tell that a job was stored; the caller's transaction may still undo it."""
    if enqueue_is_heard():
        task_enqueued.send(sender, task_result=result)


def attempt_started(sender: type, attempt: Any, read: Callable[[], AnyResult]) -> None:
    """Tell that a body is about to be called."""
    if _has_receivers(task_started):
        _tell(task_started, sender, read)
    elif _is_written(logging.INFO):
        status = TaskResultStatus.RUNNING
        contract.info(_LINE, attempt.id, attempt.task, status, extra=_of(attempt))


def job_finished(
    sender: type, attempt: Any, read: Callable[[], AnyResult], exception: BaseException | None
) -> None:
    """Tell that a job ended for good; Django's log line takes its traceback from here."""
    if _has_receivers(task_finished):
        _tell_with(exception, sender, read)
        return
    level = logging.INFO if exception is None else logging.ERROR
    if _is_written(level):
        status = TaskResultStatus.SUCCESSFUL if exception is None else TaskResultStatus.FAILED
        told = (attempt.id, attempt.task, status)
        contract.log(level, _LINE, *told, exc_info=exception, extra=_of(attempt))


def _of(attempt: Any) -> dict[str, Any]:
    """Return what a line of the log says of an attempt beside its text."""
    return {
        "job": str(attempt.id), "task": attempt.task, "queue": attempt.queue,
        "attempt": attempt.attempt, "fence": attempt.fence,
    }  # fmt: skip


def attempt_superseded(job: object, attempt: int) -> None:
    """Tell that an attempt was ended by somebody else: its outcome was not kept."""
    counting.count([counting.Label(counting.SUPERSEDED)])
    signals.tell(signals.task_superseded, None, job=str(job), attempt=attempt)
    ours.warning(
        "attempt.superseded job=%s attempt=%s: it was ended by somebody else before; "
        "its outcome was not kept.",
        job,
        attempt,
    )


def hook_failed(job: object, task: str, exception: BaseException) -> None:
    """Tell that a hook of on_commit raised after its job had succeeded, which it still has."""
    ours.error(
        "hook.failed job=%s task=%s: a hook of on_commit raised after the commit; the job has "
        "succeeded all the same.",
        job,
        task,
        exc_info=exception,
    )


def breaker_changed(task: str, change: str, failures: int) -> None:
    """Tell that the breaker of a task has opened, stays open after a trial, or has closed."""
    if change == "opened":
        ours.error("breaker.opened task=%s: %s attempts failed; its jobs wait.", task, failures)
    elif change == "reopened":
        ours.warning("breaker.reopened task=%s: its trial failed; its jobs wait on.", task)
    else:
        ours.info("breaker.closed task=%s: its trial succeeded; its jobs go on.", task)


def loop_left(exception: BaseException) -> None:
    """Tell that something inside an async body threw the event loop out of its round."""
    ours.error(
        "loop.left: %r came out of the event loop, which goes on.", exception, exc_info=exception
    )


def task_unknown(job: object, task: str) -> None:
    """Tell that jobs wait because this worker does not know their task; once for each task."""
    if task in _told_unknown:
        return
    _told_unknown.add(task)
    ours.warning(
        "task.unknown task=%s job=%s: no such task is known here; its jobs wait for a worker "
        "that knows it.",
        task,
        job,
    )


def job_swept(swept: Any, why: str = "is gone") -> None:
    """Tell that a job was taken from a worker that is gone, and what is known of its end."""
    counting.count([counting.Label(counting.ATTEMPTS, swept.task, "", swept.reason or "lost")])
    told = {"worker": str(swept.worker), "status": swept.status, "reason": swept.reason}
    signals.tell(signals.task_swept, None, job=str(swept.id), task=swept.task, **told)
    ours.warning(
        "job.swept job=%s task=%s worker=%s state=%s reason=%s: its worker %s.",
        swept.id,
        swept.task,
        swept.worker,
        swept.status,
        swept.reason,
        why,
    )


def series_seeded(key: str | None, job: object) -> None:
    """Tell that a series that goes on by itself was begun, or begun again."""
    ours.info("series.seeded key=%s job=%s: none of its jobs waited or ran.", key, job)


def series_superseded(turn: Any, generation: int) -> None:
    """Tell that an attempt ended after its job was replaced: it named no successor."""
    ours.info(
        "series.superseded key=%s job=%s generation=%s: generation %s stands in its place, and "
        "names what comes next.",
        turn.key,
        turn.job,
        turn.generation,
        generation,
    )


def worker_expired(worker: object) -> None:
    """Tell that a worker was declared lost because its lease had lapsed."""
    counting.count([counting.Label(counting.LEASES_LOST)])
    signals.tell(signals.worker_lost, None, worker=str(worker))
    ours.warning("worker.expired worker=%s: its lease lapsed; its jobs go back.", worker)


def worker_lost(worker: object) -> None:
    """Tell that a worker of this supervisor was declared lost by another: it must stop."""
    ours.error("worker.lost worker=%s: its lease was taken away; it stops and starts anew.", worker)


def worker_relieved(worker: object, jobs: int) -> None:
    """Tell that a silent worker's unstarted claims were given back for it."""
    ours.warning(
        "worker.relieved worker=%s jobs=%s: a body holds its interpreter; what waits behind it "
        "goes to others.",
        worker,
        jobs,
    )


def worker_grown(worker: str, limit: int | None) -> None:
    """Tell that a worker drains and is replaced because it has grown too large."""
    ours.info(
        "worker.grown worker=%s: it is larger than %s MB (--max-memory); it drains, and another "
        "takes its place.",
        worker,
        limit,
    )


def lock_acquired(name: str, fence: int, holder: str) -> None:
    """Tell that a lock was taken."""
    ours.debug("lock.acquired name=%s fence=%s holder=%s", name, fence, holder)


def lock_released(name: str, fence: int) -> None:
    """Tell that a holder gave back its lock."""
    ours.debug("lock.released name=%s fence=%s", name, fence)


def lock_lost(name: str, fence: int, why: str) -> None:
    """Tell that a holder lost its lock while it worked under it."""
    ours.warning("lock.lost name=%s fence=%s: %s", name, fence, why)


def lock_unanswered(name: str, fence: int, what: str, error: object) -> None:
    """Tell that a lock could not be renewed or released now, since its database is away."""
    ours.warning(
        "lock.unanswered name=%s fence=%s: it could not be %s: %s", name, fence, what, error
    )


def lock_broken(name: str, by: str, reason: str) -> None:
    """Tell that a person took a lock from its holder."""
    ours.warning("lock.broken name=%s by=%s reason=%s", name, by, reason)


def task_lock_acquired(task: str) -> None:
    """Tell that a scheduled task may run here."""
    ours.info("Acquired lock for task: %s", task)


def task_lock_skipped(task: str) -> None:
    """Tell that a scheduled task runs somewhere else."""
    ours.debug("Skipping %s - already running on another pod", task)


def task_lock_running(name: str) -> None:
    """Tell that a scheduled task is about to be called."""
    ours.info("Running scheduled task: %s", name)


def task_lock_released(task: str) -> None:
    """Tell that a scheduled task may run again, here or elsewhere."""
    ours.debug("Released lock for task: %s", task)


def process_died(what: str, pid: int, reason: str) -> None:
    """Tell that a child of the supervisor is gone."""
    ours.error("process.died %s pid=%s: it %s.", what, pid, reason)


def _has_receivers(signal: Any) -> bool:
    return len(signal.receivers) > _DJANGOS_OWN[signal]


def _is_written(level: int) -> bool:
    """Return whether any handler would take a line of the contract's logger at this level.

    Django's default is a handler that is silent without DEBUG: asking costs less than the line.
    """
    if not contract.isEnabledFor(level):
        return False
    logger: logging.Logger | None = contract
    while logger is not None:
        for handler in logger.handlers:
            if handler.level <= level and _lets_pass(handler):
                return True
        logger = logger.parent if logger.propagate else None
    return False


def _lets_pass(handler: logging.Handler) -> bool:
    for one in handler.filters:
        if isinstance(one, RequireDebugTrue) and not settings.DEBUG:
            return False
    return True


def _tell_with(
    exception: BaseException | None, sender: type, read: Callable[[], AnyResult]
) -> None:
    if exception is None:
        _tell(task_finished, sender, read)
        return
    try:
        raise exception
    except BaseException:  # noqa: BLE001 - raised one line above, so that it is the current one
        _tell(task_finished, sender, read)


def _tell(signal: Any, sender: type, read: Callable[[], AnyResult]) -> None:
    try:
        result = read()
    except (compat.TaskResultDoesNotExist, DatabaseError, InterfaceError) as error:
        ours.warning("signal.skipped: the result could not be read for its receivers: %s", error)
        return
    try:
        answers = signal.send_robust(sender, task_result=result)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise
        answers = [("unknown", error)]
    signals.report(answers)


def schedule_fired(name: str, verdicts: Any, refused: str) -> None:
    """Tell what became of the due moments of a schedule; one line for all of one reason."""
    left_out: dict[str, list[Any]] = {}
    for one in verdicts:
        if refused and one.runs:
            ours.error("schedule.refused schedule=%s due=%s: %s", name, one.due_at, refused)
        elif one.runs:
            ours.debug("schedule.fired schedule=%s due=%s", name, one.due_at)
            signals.tell(signals.schedule_fired, None, schedule=name, due_at=one.due_at)
        else:
            left_out.setdefault(one.reason, []).append(one.due_at)
            told = {"schedule": name, "due_at": one.due_at, "reason": one.reason}
            signals.tell(signals.schedule_skipped, None, **told)
    for reason, moments in left_out.items():
        ours.info(
            "schedule.skipped schedule=%s count=%s first=%s: %s",
            name,
            len(moments),
            moments[0],
            reason,
        )


def schedule_broken(name: str, problem: str) -> None:
    """Tell that a schedule cannot be decided; the others go on without it."""
    ours.error("schedule.broken schedule=%s: %s", name, problem)


def dispatched(name: str, record: object, count: int) -> None:
    """Tell that a foreign backend took a run, and the how manieth delivery of it that was."""
    level = logging.DEBUG if count == 1 else logging.WARNING
    ours.log(level, "schedule.dispatched schedule=%s record=%s count=%s", name, record, count)


def dispatch_failed(name: str, record: object, error: Exception) -> None:
    """Tell that a foreign backend did not take a run; it is offered again later."""
    ours.error(
        "schedule.undispatched schedule=%s record=%s: %s; it is offered again.", name, record, error
    )


def permit_spent(permit: object) -> None:
    """Tell that a delivery came to nothing: its permit was taken, or never was."""
    ours.warning("permit.spent permit=%s: it was taken before, or is unknown; skipped.", permit)


def success_missing(name: str, task: str, by: object) -> None:
    """Tell that no run of a schedule succeeded by the time that was expected."""
    ours.error("schedule.overdue schedule=%s task=%s: no run succeeded by %s.", name, task, by)


def schedule_name_taken(name: str, source: str, owner: str) -> None:
    """Tell that code declares a schedule whose name somebody else has: it does not fire."""
    ours.error(
        "schedule.name_taken schedule=%s source=%s owner=%s: the name belongs to another, so what "
        "the code declares does not fire. Give it another name, or delete that row.",
        name,
        source,
        owner,
    )


def triggers_installed(database: str, made: int, changed: int, removed: int) -> None:
    """Tell that the triggers of channels followed their definition."""
    ours.info(
        "triggers.installed database=%s made=%s changed=%s removed=%s",
        database, made, changed, removed,
    )  # fmt: skip
