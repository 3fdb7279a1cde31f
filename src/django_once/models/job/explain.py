"""Explaining: why a job does not run, as the conditions of its claim and what stands against each.

The conditions are those of `sql.predicates`, of which the claim is built; beside them stand what
nobody claims for lack of: a worker that lives, takes from the queue and knows the task. Of each
that does not hold the evidence is shown: until when, by whom, held by which jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django_once import payload, sql
from django_once.models.gate.row import Gate
from django_once.models.job import look, stopped
from django_once.models.job.row import Job
from django_once.models.lock import HELD, known
from django_once.models.lock import state_of as state_of_lock
from django_once.models.pause.row import Pause
from django_once.models.pause.stop import pauses
from django_once.models.series.row import Series
from django_once.models.worker import Worker, seen, state_of
from django_once.sql.explain import SINCE, Explaining
from django_once.sql.values import (
    BREAKER,
    BUDGET,
    FAIR,
    LIMIT,
    LOCK,
    PAUSED,
    PREDECESSOR,
    STRUCK,
    UNKNOWN_TASK,
)

EVERY_QUEUE: Final = "*"
# Of a call, by their names; None where nobody can say them.
Arguments = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition: whether it holds, what that means here, and the evidence."""

    name: str
    holds: bool
    says: str
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job does not run, or what it waits for."""

    id: str
    state: str
    says: str
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a program reads it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job when it is explained."""

    job: Job
    now: datetime
    ask: Explaining
    workers: list[Worker]
    pauses: list[Pause]
    arguments: Arguments


def explain(
    database: str,
    id: UUID,
    arguments_of: Callable[[Job], Mapping[str, Any] | None] = lambda _: None,
) -> Explanation | None:
    """Return why this job does not run; None when there is no such job.

    Whoever has the code of its task says by `arguments_of` with which arguments it is called.
    """
    job = Job.objects.using(database).filter(pk=id).first()
    if job is None:
        return None
    ask = Explaining(sql.on(database))
    now = look.now(database)
    living = [one for one in seen(database, [job.backend]) if state_of(one, now) == "alive"]
    facts = Facts(job, now, ask, living, pauses(database, [job.backend]), arguments_of(job))
    findings = _findings(facts, ask.conditions(job.pk))
    return Explanation(str(job.pk), look.state_of(job), _verdict(findings), tuple(findings))


def _findings(facts: Facts, conditions: dict[str, bool]) -> list[Finding]:
    found = [
        Finding(name, True, "holds") if holds else OTHERWISE[name](facts)
        for name, holds in conditions.items()
    ]
    return found if facts.job.status != Job.READY else [*found, _worker(facts), _turn(facts)]


def _verdict(findings: list[Finding]) -> str:
    against = [finding.says for finding in findings if not finding.holds]
    # That it has no place follows from what blocks it.
    return against[0] if against else findings[-1].says


def _not_ready(facts: Facts) -> Finding:
    job = facts.job
    if job.status == Job.RUNNING:
        since = job.last_attempted_at
        began = f" since {_at(since)}" if since else ", claimed and not yet started"
        says = f"attempt {job.attempt} runs on worker {job.worker_name!r}{began}"
        if job.cancel_requested_at is not None:
            says += "; it was asked to end"
        return Finding("ready", False, says, {"worker": str(job.worker), "since": since})
    if job.reason == "superseded":
        return _superseded(facts)
    why = f": {job.reason}" if job.reason else ""
    says = f"it ended as {job.status} at {_at(job.finished_at)}{why}"
    return Finding("ready", False, says, {"reason": job.reason, "finished_at": job.finished_at})


def _superseded(facts: Facts) -> Finding:
    job = facts.job
    series = _of_series(facts)
    by = f" by job {series.job}" if series is not None and series.job else ""
    says = (
        f"it was superseded: another took its place under key {job.key!r}{by}, before it ran or "
        "while it did"
    )
    present = str(series.job) if series is not None and series.job else None
    return Finding("ready", False, says, {"key": job.key, "present": present})


def _blocked(facts: Facts) -> Finding:
    reason = facts.job.blocked_by
    if reason.startswith(LOCK):
        return _locked(facts)
    explained = BLOCKED.get(reason)
    if explained is None:
        return Finding("unblocked", False, f"it is blocked: {reason}", {"blocked_by": reason})
    return explained(facts)


def _unknown_task(facts: Facts) -> Finding:
    knowing = [one.name for one in facts.workers if _knows(one, facts.job)]
    says = (
        f"a worker that does not know task {facts.job.task!r} put it aside; no living worker knows "
        "it: was it renamed, or is the code not deployed?"
        if not knowing
        else f"it was put aside as unknown; {', '.join(knowing)} will take it when it looks"
    )
    return Finding("unblocked", False, says, {"task": facts.job.task, "known_to": knowing})


def _predecessor(facts: Facts) -> Finding:
    job = facts.job
    if job.order_key is not None:
        return _earlier(job)
    running = Job.objects.using(str(job._state.db)).filter(
        key=job.key, backend=job.backend, status=Job.RUNNING
    )
    ids = [str(id) for id in running.values_list("pk", flat=True)[:5]]
    says = f"its predecessor under key {job.key!r} still runs: {', '.join(ids) or 'it just ended'}"
    return Finding("unblocked", False, says, {"key": job.key, "running": ids})


def _earlier(job: Job) -> Finding:
    """Return what stands before a notification in its order."""
    before = Job.objects.using(str(job._state.db)).filter(
        order_key=job.order_key, backend=job.backend, finished_at=None,
        generation__lt=job.generation,
    )  # fmt: skip
    ids = [str(id) for id in before.order_by("generation").values_list("pk", flat=True)[:5]]
    says = (
        f"those before it in its order have not ended, {ids[0]} first"
        if ids
        else "those before it in its order have just ended, and it is about to be let go"
    )
    return Finding("unblocked", False, says, {"order_key": job.order_key, "before": ids})


def _limited(facts: Facts) -> Finding:
    job = facts.job
    assert job.gate is not None
    rule = payload.decode(job.rule or "{}")
    before = facts.ask.waiting_before(job.backend, job.gate, job.gate_rank or 0)
    held = [str(id) for id in facts.ask.holders(job.backend, job.gate)]
    most = rule.get("concurrency")
    evidence: dict[str, Any] = {"limit": job.limit_key, "held_by": held, "ahead": before}
    if most is not None and len(held) >= min(most, 10):
        says = f"limit {job.limit_key!r} lets {most} hold a slot at once, held by {', '.join(held)}"
        evidence["concurrency"] = most
    else:
        free_at = _free_at(facts)
        evidence["rate_free_at"] = free_at
        says = f"limit {job.limit_key!r}: its rate lets the next begin at {_at(free_at)}"
    return Finding("unblocked", False, f"{says}; {before} wait before it", evidence)


def _shared(facts: Facts) -> Finding:
    job = facts.job
    assert job.gate is not None
    before = facts.ask.waiting_before(job.backend, job.gate, job.gate_rank or 0)
    says = f"the share of {job.fair_key!r} is used up for now; {before} of it wait before it"
    return Finding("unblocked", False, says, {"fair_key": job.fair_key, "ahead": before})


def _locked(facts: Facts) -> Finding:
    name = facts.job.blocked_by.removeprefix(LOCK)
    found = known(str(facts.job._state.db), name=name, only_held=True)
    held = [one for one in found if state_of_lock(one, facts.now) == HELD]
    if not held:
        says = f"lock {name!r} is free again; a keeper lets the job go within seconds"
        return Finding("unblocked", False, says, {"lock": name, "held_by": ""})
    until = held[0].expires_at
    says = f"lock {name!r} is held by {held[0].holder!r} until {_at(until)}, unless it is renewed"
    return Finding(
        "unblocked", False, says, {"lock": name, "held_by": held[0].holder, "until": until}
    )


def _paused(facts: Facts) -> Finding:
    job = facts.job
    names = {(Pause.TASK, job.task), *((Pause.KEY, key) for key in _keys(job))}
    found = [one for one in facts.pauses if (one.kind, one.name) in names]
    if not found:
        says = "a pause that is over put it aside; it is let go within a minute"
        return Finding("unblocked", False, says)
    return _by(found[0], "unblocked")


def _queue_paused(facts: Facts) -> Finding:
    for one in facts.pauses:
        if (one.kind, one.name) == (Pause.QUEUE, facts.job.queue):
            return _by(one, "queue_open")
    return Finding("queue_open", False, "its queue was paused a moment ago")


def _by(pause: Pause, name: str) -> Finding:
    until = f" until {_at(pause.until)}" if pause.until else ""
    who = f" by {pause.paused_by}" if pause.paused_by else ""
    why = f": {pause.reason}" if pause.reason else ""
    evidence = {
        "kind": pause.kind, "name": pause.name, "paused_by": pause.paused_by,
        "paused_at": pause.paused_at, "until": pause.until, "reason": pause.reason,
    }  # fmt: skip
    return Finding(name, False, f"{pause.kind} {pause.name!r} is paused{who}{until}{why}", evidence)


def _covered(facts: Facts) -> Finding:
    finding = _paused(facts)
    return Finding("unpaused", False, finding.says, finding.evidence)


def _struck(facts: Facts) -> Finding:
    return Finding("unblocked", *stopped.struck(facts.job, facts.arguments))


def _broken(facts: Facts) -> Finding:
    return Finding("unblocked", *stopped.broken(facts.job, facts.now))


def _beyond_budget(facts: Facts) -> Finding:
    return Finding("unblocked", *stopped.beyond_budget(facts.job, facts.now))


def _by_task(name: str, ask: Callable[[Facts], Finding]) -> Callable[[Facts], Finding]:
    """Return the finding of this name although another one, that it is blocked, says the same."""
    return lambda facts: replace(ask(facts), name=name)


def _not_due(facts: Facts) -> Finding:
    job = facts.job
    if job.status != Job.READY or job.blocked_by:
        return Finding("due", False, "it has no place in the ready index")
    if job.due_at <= facts.now:
        says = "it is due; a keeper gives it its place within a second, if one lives"
        return Finding("due", False, says, {"due_at": job.due_at})
    why = ""
    if job.gate_rank is not None and job.limit_key is not None:
        why = f", when the rate of limit {job.limit_key!r} lets it"
    elif job.failures or job.attempt:
        why = f", for attempt {job.attempt + 1}"
    says = f"it is not due until {_at(job.due_at)}{why}"
    return Finding("due", False, says, {"due_at": job.due_at, "run_after": job.run_after})


def _worker(facts: Facts) -> Finding:
    """Return whether anybody lives who would take it."""
    job = facts.job
    serving = [one for one in facts.workers if _serves(one, job)]
    if not serving:
        there = f"{len(facts.workers)} live, on other queues" if facts.workers else "none lives"
        says = f"no living worker takes from queue {job.queue!r}: {there}"
        return Finding("worker", False, says, {"queue": job.queue, "living": len(facts.workers)})
    knowing = [one.name for one in serving if _knows(one, job)]
    if not knowing:
        names = [one.name for one in serving]
        says = f"no worker on queue {job.queue!r} knows task {job.task!r}: {', '.join(names)}"
        return Finding("worker", False, says, {"task": job.task, "workers": names})
    return Finding("worker", True, f"{len(knowing)} would take it", {"workers": knowing})


def _turn(facts: Facts) -> Finding:
    """Return how many come before it, and how fast they go."""
    job = facts.job
    if job.position is None:
        return Finding("turn", True, "it stands in no queue yet")
    ahead = facts.ask.ready_before(job.backend, job.queue, job.priority, job.position)
    rate = facts.ask.ended_lately(job.backend, job.queue) / SINCE.total_seconds()
    says = f"{ahead} ready jobs of queue {job.queue!r} come before it; {rate:.1f} a second end now"
    return Finding("turn", True, says, {"ahead": ahead, "rate": rate})


def _serves(worker: Worker, job: Job) -> bool:
    queues = payload.decode(worker.queues)
    return job.queue in queues or EVERY_QUEUE in queues


def _knows(worker: Worker, job: Job) -> bool:
    return job.task in payload.decode(worker.tasks)


def _keys(job: Job) -> list[str]:
    return [key for key in (job.key, job.limit_key, job.fair_key) if key is not None]


def _of_series(facts: Facts) -> Series | None:
    job = facts.job
    rows = Series.objects.using(str(job._state.db))
    return rows.filter(backend=job.backend, key=job.key or "").first()


def _free_at(facts: Facts) -> datetime | None:
    job = facts.job
    rows = Gate.objects.using(str(job._state.db)).filter(backend=job.backend, name=job.gate or "")
    for free_at in rows.values_list("free_at", flat=True):
        return datetime.fromtimestamp(free_at / 1_000_000, UTC)
    return None


def _at(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "an unknown moment"


OTHERWISE: Final[dict[str, Callable[[Facts], Finding]]] = {
    "ready": _not_ready,
    "unblocked": _blocked,
    "due": _not_due,
    "queue_open": _queue_paused,
    "unpaused": _covered,
    "unstruck": _by_task("unstruck", _struck),
    "unbroken": _by_task("unbroken", _broken),
}
BLOCKED: Final[dict[str, Callable[[Facts], Finding]]] = {
    UNKNOWN_TASK: _unknown_task,
    PREDECESSOR: _predecessor,
    LIMIT: _limited,
    FAIR: _shared,
    PAUSED: _paused,
    STRUCK: _struck,
    BREAKER: _broken,
    BUDGET: _beyond_budget,
}
