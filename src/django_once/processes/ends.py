"""How attempts end: from what a body returned or raised to what is to become of its job.

Everything here is decided from values; somebody else stores it. A body ends its attempt well by
returning, for good by `Cancel`, for later by `Snooze`. Whatever else it raises is a failure, and
the policy says whether it is tried again; unless it was asked to end and did so, by
`context.check()` or by letting its CancelledError pass: then it ends for what it was asked for.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django_once import compat, counting, declare, events, payload, redaction, signals
from django_once.backend import DatabaseBackend
from django_once.definitions.ends import Cancel, Snooze
from django_once.definitions.options import AT_MOST_ONCE
from django_once.definitions.retry import Retry
from django_once.errors import Cancelled, InvalidOption, Redacted, Superseded, TimedOut
from django_once.models import Job
from django_once.processes.running import Running
from django_once.sql.values import (
    CANCELLED,
    DIED,
    LOST,
    PAUSED,
    RAISED,
    RELEASED,
    SNOOZED,
    SUPERSEDED,
    TIMED_OUT,
    UNKNOWN_TASK,
    Attempt,
    Outcome,
    Told,
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended: what to settle, unless it committed its outcome itself."""

    attempt: Attempt
    outcome: Outcome | None
    exception: BaseException | None = None
    told: Told | None = None
    # How long a body ran that stored its own end.
    ran: float | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """What an attempt is about to call."""

    backend: DatabaseBackend
    attempt: Attempt
    task: compat.AnyTask
    args: list[Any]
    kwargs: dict[str, Any]
    running: Running


def _outcome(attempt: Attempt, **said: Any) -> Outcome:
    """Return an end of this attempt, under the claim that began it and the key of its job."""
    return Outcome(id=attempt.id, claim=attempt.claim, key=attempt.key, **said)


def given_back(attempt: Attempt) -> Ended:
    """Return the end of an attempt that was never started: it does not count."""
    outcome = _outcome(attempt, status=Job.READY, reason=RELEASED, given_back=True)
    return Ended(attempt, outcome)


def superseded(attempt: Attempt) -> Ended:
    """Return the end of an attempt whose job somebody else has: there is nothing to store."""
    events.attempt_superseded(attempt.id, attempt.attempt)
    return Ended(attempt, None, Superseded("Somebody else has the job."))


def unknown(attempt: Attempt) -> Ended:
    """Return the end of an attempt whose task this worker lacks: its job waits for another."""
    events.task_unknown(attempt.id, attempt.task)
    outcome = _outcome(attempt, status=Job.READY, blocked_by=UNKNOWN_TASK,
        given_back=True,
    )  # fmt: skip
    return Ended(attempt, outcome)


def paused(attempt: Attempt) -> Ended:
    """Return the end of an attempt whose task or key is paused: its job waits for the resume."""
    return stopped(attempt, PAUSED)


def stopped(attempt: Attempt, blocked_by: str, *, reason: str = "", delay: float = 0.0) -> Ended:
    """Return the end of an attempt that something stands against: unstarted and uncharged."""
    outcome = _outcome(attempt, status=Job.READY, blocked_by=blocked_by, reason=reason,
        delay=delay, given_back=True,
    )  # fmt: skip
    return Ended(attempt, outcome)


def over(attempt: Attempt, reason: str, exception: BaseException, **said: Any) -> Ended:
    """Return the end of a job that is over for this reason, whatever the policy says."""
    outcome = _outcome(attempt, status=Job.FAILED, reason=reason,
        entry=_entry(reason, attempt, exception), **said,
    )  # fmt: skip
    return Ended(attempt, outcome, exception)


def value_text(body: Body, value: Any) -> str:
    """Return a return value as it is stored; refuse what JSON cannot keep."""
    most = body.backend.settings.max_result
    return payload.encode(value, "The return value", most_bytes=most)


def succeeded(body: Body, value: Any) -> Ended:
    """Return the end of an attempt whose body returned."""
    attempt = body.attempt
    outcome = _outcome(
        attempt,
        status=Job.SUCCESSFUL,
        return_value=value_text(body, value),
        ran=body.running.seconds,
        next=body.running.next,
        removed=attempt.is_removed,
    )
    return Ended(attempt, outcome)


def failed(body: Body, exception: BaseException) -> Ended:
    """Return the end of an attempt whose body raised: again later, or no more.

    What is hidden of its arguments is not told by its error either.
    """
    return _without_secrets(body, _raised(body, exception))


def _raised(body: Body, exception: BaseException) -> Ended:
    if isinstance(exception, Snooze):
        return _snoozed(body, exception)
    if isinstance(exception, Cancel):
        error = Cancelled(exception.reason).with_traceback(exception.__traceback__)
        return over(body.attempt, CANCELLED, error, ran=body.running.seconds)
    asked = body.running.asked
    if isinstance(asked, Cancelled):
        # It did not succeed, and that was wanted: how it failed is of no account.
        return over(body.attempt, CANCELLED, exception, ran=body.running.seconds)
    if asked is not None and (exception is asked or isinstance(exception, asyncio.CancelledError)):
        if isinstance(asked, TimedOut):
            return _failed(body, asked.with_traceback(exception.__traceback__), TIMED_OUT)
        return _let_go(body, asked)
    return _failed(body, exception, RAISED)


def _failed(body: Body, exception: BaseException, reason: str) -> Ended:
    attempt = body.attempt
    budget = (attempt.failures + 1, attempt.max_attempts)
    delay = delay_of(body.backend, body.task, exception, *budget)
    outcome = _outcome(
        attempt,
        status=Job.FAILED if delay is None else Job.READY,
        reason=reason,
        delay=delay.total_seconds() if delay else 0.0,
        entry=_entry(reason, attempt, exception),
        ran=body.running.seconds,
        failed=True,
        next=body.running.next,
    )
    return Ended(attempt, outcome, exception)


def _snoozed(body: Body, snooze: Snooze) -> Ended:
    attempt = body.attempt
    if attempt.delivery == AT_MOST_ONCE:
        refusal = InvalidOption(
            f"{attempt.task} is at_most_once, so it cannot snooze: its function would be started "
            "twice. Look before you enqueue it, or enqueue another job."
        )
        return over(attempt, RAISED, refusal, ran=body.running.seconds, failed=True)
    outcome = _outcome(attempt, status=Job.READY, reason=SNOOZED,
        delay=snooze.after.total_seconds(), ran=body.running.seconds, given_back=True,
    )  # fmt: skip
    return Ended(attempt, outcome)


def _let_go(body: Body, asked: BaseException) -> Ended:
    """Return the end of an attempt whose worker no longer knew whether the job was its own."""
    attempt = body.attempt
    if attempt.delivery == AT_MOST_ONCE:
        return over(attempt, LOST, asked, ran=body.running.seconds)
    outcome = _outcome(attempt, status=Job.READY, reason=LOST,
        entry=_entry(LOST, attempt, asked), ran=body.running.seconds,
    )  # fmt: skip
    return Ended(attempt, outcome)


def cut_off(body: Body, exception: BaseException) -> Ended:
    """Return the end of an attempt whose line was lost with all it wrote: it is like a death.

    The function did not fail, so no policy of retries is asked; a body that ends its own session
    each time must not do so for ever.
    """
    attempt = body.attempt
    is_over = attempt.deaths >= attempt.max_deaths
    outcome = _outcome(attempt, status=Job.FAILED if is_over else Job.READY,
        reason=DIED if is_over else LOST, entry=_entry(DIED, attempt, exception),
        ran=body.running.seconds, died=True,
    )  # fmt: skip
    return _without_secrets(body, Ended(attempt, outcome, exception))


def tellable(body: Body, exception: BaseException) -> BaseException:
    """Return an exception as logs and receivers may have it: without what is hidden."""
    told = _secrets_of(body)
    text = "" if told is None else payload.traceback_of(exception)
    cleaned = text if told is None else told.text(text)
    return exception if cleaned == text else Redacted(cleaned)


def _without_secrets(body: Body, ended: Ended) -> Ended:
    told = _secrets_of(body)
    if told is None or ended.outcome is None:
        return ended
    outcome = ended.outcome
    if outcome.entry is not None:
        member = payload.decode(f"{{{outcome.entry}")
        cleaned = {**member, "traceback": told.text(member["traceback"])}
        outcome = outcome._replace(entry=payload.unbraced(cleaned))
    exception = ended.exception and tellable(body, ended.exception)
    return replace(ended, outcome=outcome, exception=exception)


def _secrets_of(body: Body) -> redaction.Shown | None:
    """Return what knows the secrets of a call, or None when it has none."""
    attempt = body.attempt
    rules = redaction.rules_of(attempt.task, body.backend.alias)
    if not rules:
        return None
    args, kwargs = redaction.decoded(attempt.args), redaction.decoded(attempt.kwargs)
    return redaction.without(attempt.task, args, kwargs, rules)


def let_a_person_interrupt(exception: BaseException) -> None:
    """Let Ctrl-C through where it can reach: in the main thread of a test or a shell."""
    is_main = threading.current_thread() is threading.main_thread()
    if isinstance(exception, KeyboardInterrupt) and is_main:
        raise exception


def delay_of(
    backend: DatabaseBackend, task: compat.AnyTask | None, exception: BaseException,
    failures: int, most: int,
) -> timedelta | None:  # fmt: skip
    """Return when to try again, by the policy; the budget that stands in the row is the limit."""
    policy: Retry | None = declare.options_of(task).get("retry") if task is not None else None
    policy = policy or backend.settings.retry
    if policy is None or failures >= most:
        return None
    return policy.decide(exception, failures)


def _entry(kind: str, attempt: Attempt, exception: BaseException) -> str:
    return payload.entry(
        kind,
        exception,
        attempt=attempt.attempt,
        worker=attempt.worker_name,
        history_length=attempt.history_length,
    )


def counted(batch: list[Ended], superseded: set[UUID]) -> dict[counting.Label, int]:
    """Return what the figures say of attempts that ended."""
    sums: dict[tuple[str, str, str], int] = {}
    for ended in batch:
        attempt = ended.attempt
        key = (attempt.task, attempt.queue, word_of(ended, superseded))
        sums[key] = sums.get(key, 0) + 1
    return {counting.Label(counting.ATTEMPTS, *key): number for key, number in sums.items()}


def word_of(ended: Ended, superseded: set[UUID]) -> str:
    """Return the word for what became of an attempt."""
    outcome = ended.outcome
    if outcome is None:
        return SUPERSEDED if isinstance(ended.exception, Superseded) else "successful"
    if superseded and ended.attempt.id in superseded:
        return SUPERSEDED
    if outcome.status == Job.SUCCESSFUL:
        return "successful"
    if outcome.status == Job.FAILED:
        return "failed" if outcome.reason == RAISED else outcome.reason
    return "retried" if outcome.failed else outcome.reason or outcome.blocked_by


def tell_finished(backend: DatabaseBackend, ended: Ended) -> None:
    """Tell that a job ended for good, once its end is stored."""
    outcome: Any = ended.outcome
    if outcome is not None and outcome.status == Job.READY:
        _tell_back(backend, ended.attempt, outcome)
        return
    if isinstance(ended.exception, Superseded):
        return
    if ended.attempt.is_removed and ended.exception is None:
        # There is no result left to tell of.
        return
    read = partial(backend.get_result, str(ended.attempt.id))
    events.job_finished(type(backend), ended.attempt, read, ended.exception)


def _tell_back(backend: DatabaseBackend, attempt: Attempt, outcome: Outcome) -> None:
    """Tell that an attempt ended and its job comes back."""
    told: dict[str, Any] = {
        "job": str(attempt.id), "task": attempt.task, "queue": attempt.queue,
        "attempt": attempt.attempt, "fence": attempt.fence, "reason": outcome.reason,
    }  # fmt: skip
    if outcome.failed:
        signals.tell(signals.task_retried, type(backend), delay=outcome.delay, **told)
    elif outcome.reason == SNOOZED:
        signals.tell(signals.task_snoozed, type(backend), delay=outcome.delay, **told)
    else:
        signals.tell(signals.task_released, type(backend), **told)
