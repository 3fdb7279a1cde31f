"""Acts: what an operator does to jobs, queues, schedules, workers and locks, one at a time.

Each goes through the verb that everybody uses, which guards what it changes; so a row that changed
meanwhile is not changed again, and the answer says what happened instead. Each leaves a line in the
audit log, and leads back to the page it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.management.base import CommandError
from django.http import HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from django_once import events, payload
from django_once.admin import places
from django_once.dashboard import backfill
from django_once.dashboard.answers import Shown
from django_once.dashboard.visits import NotThere, Visit
from django_once.errors import OnceError
from django_once.management.moments import until_when
from django_once.management.selection import counted
from django_once.management.steering import retry_jobs
from django_once.models import AuditEntry, Schedule, Tally, audit
from django_once.models.job.cancel import cancel
from django_once.models.lock import end_by_force
from django_once.models.pause.stop import KINDS, pause, resume
from django_once.models.schedule import look
from django_once.models.strike.stop import restore, strikes
from django_once.models.tally.breaker import close
from django_once.models.worker import ask_to_drain
from django_once.scheduling import editing, running
from django_once.sql.lines import close_idle, line

MOST_JOBS: Final = 500
LONGEST: Final = 255
BREAKER: Final = Tally.BREAKER
Outcome = tuple[bool, str, int]


class Refused(OnceError):
    """What a form asks for makes no sense; the sentence says why."""


def act(visit: Visit, verb: str) -> HttpResponseRedirect | Shown:
    """Do what a form asks for, tell what came of it, and lead back."""
    found = ACTS.get(verb)
    if found is None:
        raise NotThere(f"There is no act {verb!r}.")
    try:
        answer = found(visit)
    except (OnceError, CommandError) as refused:
        answer = (False, str(refused), 0)
    if isinstance(answer, Shown):
        return answer
    is_well, says, _ = answer
    return led_back(visit, is_well, says)


def led_back(visit: Visit, is_well: bool, says: str) -> HttpResponseRedirect:
    """Tell what came of an act, and lead back to the page it came from."""
    level = messages.SUCCESS if is_well else messages.WARNING
    messages.add_message(visit.request, level, says)
    address = visit.request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        address, {visit.request.get_host()}, require_https=visit.request.is_secure()
    )
    return HttpResponseRedirect(address if is_ours else visit.address("changelist"))


def logged(visit: Visit, verb: str, kind: str, about: str, **said: Any) -> Any:
    """Keep an act of this visit in the audit log while it happens."""
    return audit.acted(
        visit.database, actor=visit.actor, door=AuditEntry.DASHBOARD, act=verb, kind=kind,
        about=about, **said,
    )  # fmt: skip


def said(visit: Visit, name: str) -> str:
    """Return what a form says of a name, or refuse what no column could keep."""
    text: str = visit.request.POST.get(name, "").strip()
    if "\x00" in text or len(text) > LONGEST:
        raise Refused(f"{name.capitalize()} has at most {LONGEST} characters, and no NUL.")
    return text


def _jobs(visit: Visit) -> list[UUID]:
    texts = visit.request.POST.getlist("job")
    if not texts:
        raise Refused("No job was selected.")
    if len(texts) > MOST_JOBS or not places.are_ids(texts):
        raise Refused("What was selected are no ids of jobs.")
    return [UUID(text) for text in texts]


def _about(jobs: list[UUID]) -> dict[str, Any]:
    if len(jobs) == 1:
        return {"about": str(jobs[0]), "job": jobs[0]}
    return {"about": " ".join(map(str, jobs))}


def _retry(visit: Visit) -> Outcome:
    jobs = _jobs(visit)
    with logged(visit, "retry", "job", **_about(jobs)) as log:
        retried = retry_jobs(visit.backends, visit.database, jobs)
        parts = [f"{counted(retried)} retried"]
        if len(jobs) > retried:
            parts.append(
                f"{len(jobs) - retried:,} not: they had not ended, run just now, gave way to a "
                "successor, or were pruned"
            )
        log.tell(f"{', '.join(parts)}.", retried)
    return len(jobs) == retried, log.outcome, retried


def _cancel(visit: Visit) -> Outcome:
    jobs = _jobs(visit)
    with logged(visit, "cancel", "job", **_about(jobs)) as log:
        answer = cancel(visit.database, jobs)
        parts = [f"{counted(answer.ended)} cancelled"]
        if answer.requested:
            parts.append(f"{answer.requested:,} asked to end")
        if answer.busy:
            parts.append(f"{answer.busy:,} busy: a transaction holds them, try again")
        left = len(jobs) - answer.ended - answer.requested - answer.busy
        if left:
            parts.append(f"{left:,} had ended before")
        log.tell(f"{', '.join(parts)}.", answer.ended + answer.requested)
    return not (answer.busy or left), log.outcome, log.done


def _paused(visit: Visit) -> tuple[str, str, str]:
    kind, name, backend = said(visit, "kind"), said(visit, "name"), said(visit, "backend")
    backend = backend or visit.aliases[0]
    if kind not in (*KINDS, BREAKER) or not name or backend not in visit.aliases:
        raise Refused("Say which queue, task or key is meant.")
    return kind, name, backend


def _until(visit: Visit) -> datetime | None:
    text = said(visit, "until")
    if not text:
        return None
    until = until_when(text, visit.now)
    if until <= visit.now:
        raise Refused("A pause ends in the future.")
    return until


def _pause(visit: Visit) -> Outcome:
    kind, name, backend = _paused(visit)
    if kind == BREAKER:
        raise Refused("A breaker opens by itself: pause its task.")
    reason, until = said(visit, "reason"), _until(visit)
    with logged(visit, "pause", kind, name, backend=backend, reason=reason) as log:
        pause(visit.database, backend, kind, name, reason=reason, until=until, by=visit.actor)
        log.tell(f"{kind.capitalize()} {name!r} is paused; what runs goes on to its end.")
    return True, log.outcome, 1


def _resume(visit: Visit) -> Outcome:
    kind, name, backend = _paused(visit)
    with logged(visit, "resume", kind, name, backend=backend) as log:
        verb = partial(close, visit.database, backend, name)
        if kind != BREAKER:
            verb = partial(resume, visit.database, backend, kind, name)
        if not verb():
            log.tell(f"{kind.capitalize()} {name!r} was not paused: somebody resumed it before.", 0)
            return False, log.outcome, 0
        for one in visit.backends:
            if one.alias == backend:
                one.announce(is_ready=True)
        log.tell(f"{kind.capitalize()} {name!r} goes on.")
    return True, log.outcome, 1


def _restore(visit: Visit) -> Outcome:
    struck = [one for one in strikes(visit.database, visit.aliases) if one.pk == said(visit, "id")]
    if not struck:
        raise Refused("That strike is not there any more: somebody took it back.")
    (one,) = struck
    with logged(visit, "restore", "task", one.task, backend=one.backend) as log:
        arguments = payload.decode(one.arguments)
        was_struck = restore(visit.database, one.backend, one.task, arguments)
        word = "may run again" if was_struck else "were not struck any more"
        log.tell(f"These jobs of {one.task!r} {word}.", int(was_struck))
    return was_struck, log.outcome, log.done


def _schedule(visit: Visit) -> Schedule:
    text = said(visit, "schedule")
    found = look.with_id(visit.database, UUID(text)) if places.are_ids([text]) else None
    if found is None:
        raise Refused("That schedule is not there any more: somebody deleted it.")
    return found


def _of_schedule(verb: str, done: str, change: Callable[[Visit, Schedule], object]) -> Any:
    def do(visit: Visit) -> Outcome:
        schedule = _schedule(visit)
        reason = said(visit, "reason")
        with logged(visit, verb, "schedule", schedule.name, reason=reason) as log:
            change(visit, schedule)
            log.tell(f"Schedule {schedule.name!r} {done}.")
        return True, log.outcome, 1

    return do


def _pause_schedule(visit: Visit, schedule: Schedule) -> None:
    editing.pause(visit.database, schedule.pk, said(visit, "reason"), _until(visit))


def _backfill(visit: Visit) -> Outcome | Shown:
    schedule = _schedule(visit)
    asked = backfill.asked(visit, schedule, {name: said(visit, name)
                                             for name in ("begin", "end", "rate")})  # fmt: skip
    if not visit.request.POST.get("confirmed"):
        return backfill.show(visit, schedule, asked)
    about = f"{schedule.name}: {asked.begin:%Y-%m-%dT%H:%MZ} – {asked.end:%Y-%m-%dT%H:%MZ}"
    with logged(visit, "backfill", "schedule", about) as log:
        begun = backfill.run(visit, schedule, asked)
        runs = len(begun.moments)
        log.tell(f"{runs:,} {'run was' if runs == 1 else 'runs were'} begun; "
                 f"{begun.ran_before:,} had run before.", runs)  # fmt: skip
    return True, log.outcome, runs


def _drain(visit: Visit) -> Outcome:
    text = said(visit, "worker")
    if not places.are_ids([text]):
        raise Refused("That is no id of a worker.")
    with logged(visit, "drain", "worker", said(visit, "name") or text) as log:
        names = ask_to_drain(visit.database, UUID(text))
        if not names:
            log.tell("That worker has ended, or drains already.", 0)
            return False, log.outcome, 0
        says = "They take nothing more, finish what runs, and end."
        log.tell(f"Asked to drain: {', '.join(names)}. {says}", len(names))
    return True, log.outcome, len(names)


def _release(visit: Visit) -> Outcome:
    name, reason = said(visit, "name"), said(visit, "reason")
    if not name or not reason:
        raise Refused("Say why the lock is taken from its holder.")
    with logged(visit, "release", "lock", name, reason=reason) as log:
        by = f"{visit.actor} (dashboard)"[:LONGEST]
        with line(visit.database) as connection:
            was_taken = end_by_force(connection, name, by, reason)
        close_idle(visit.database, 0.0)
        if not was_taken:
            log.tell(f"Lock {name!r} was released meanwhile: nothing was taken.", 0)
            return False, log.outcome, 0
        events.lock_broken(name, by, reason)
        log.tell(f"Lock {name!r} was taken from its holder, which finds it lost.")
    return True, log.outcome, 1


ACTS: Final[dict[str, Callable[[Visit], Outcome | Shown]]] = {
    "retry": _retry,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "restore": _restore,
    "drain": _drain,
    "release": _release,
    "schedule-run": _of_schedule(
        "run", "runs now", lambda visit, one: running.run_now(visit.database, one.pk)
    ),
    "schedule-pause": _of_schedule("pause", "is paused", _pause_schedule),
    "schedule-resume": _of_schedule(
        "resume", "fires again", lambda visit, one: editing.resume(visit.database, one.pk)
    ),
    "schedule-enable": _of_schedule(
        "enable", "is enabled", lambda visit, one: editing.enable(visit.database, one.pk)
    ),
    "schedule-disable": _of_schedule(
        "disable", "is disabled", lambda visit, one: editing.disable(visit.database, one.pk)
    ),
    "schedule-backfill": _backfill,
}
