"""Jobs and workers as programs read them: the keys of every `--json`, which stay what they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django_once import payload
from django_once.models import Job, Worker
from django_once.models.job.look import PAYLOAD, state_of
from django_once.models.worker import state_of as state_of_worker
from django_once.redaction import shown

JOB: Final = (
    "id", "backend", "task", "queue", "priority", "state", "status", "reason", "blocked_by",
    "delivery", "attempt", "max_attempts", "failures", "deaths", "max_deaths", "fence", "claim",
    "worker", "worker_name", "enqueued_at", "run_after", "due_at", "started_at",
    "last_attempted_at", "finished_at", "expires_at", "cancel_requested_at", "timeout", "key",
    "generation", "limit_key", "batch", "channel",
)  # fmt: skip
ENTRY: Final = ("at", "kind", "attempt", "worker", "error", "traceback")
WORKER: Final = (
    "id", "name", "backend", "state", "host", "pid", "queues", "tasks", "concurrency", "running",
    "version", "supervisor", "started_at", "renewed_at", "leased_until", "lost_at", "stopped_at",
)  # fmt: skip


def of_job(job: Job, *, with_payload: bool = False) -> dict[str, Any]:
    """Return a job without its history; its arguments and result only when they are asked for."""
    row = {name: getattr(job, name) for name in JOB if name != "state"}
    row = {name: row.get(name, state_of(job)) for name in JOB}
    if with_payload:
        told = shown(job)
        row |= {name: getattr(told, name) for name in PAYLOAD}
    return row


def of_history(job: Job, *, with_tracebacks: bool = False) -> list[dict[str, Any]]:
    """Return what stands in a job's history; tracebacks, which are long, only when asked for."""
    entries = [{name: entry.get(name) for name in ENTRY} for entry in decoded(job.history)]
    for entry in entries:
        # Each database writes its own number of digits.
        entry["at"] = datetime.fromisoformat(entry["at"])
    if not with_tracebacks:
        return [{**entry, "traceback": None} for entry in entries]
    told = shown(job)
    return [{**entry, "traceback": told.text(entry["traceback"] or "")} for entry in entries]


def of_worker(worker: Worker, now: datetime, running: int) -> dict[str, Any]:
    """Return a worker, and how many jobs it holds."""
    found = {
        "state": state_of_worker(worker, now),
        "queues": decoded(worker.queues),
        "tasks": decoded(worker.tasks),
        "running": running,
    }
    return {name: found[name] if name in found else getattr(worker, name) for name in WORKER}


def decoded(text: str | None) -> Any:
    """Return the value of a JSON column; NULL is None."""
    return None if text is None else payload.decode(text)
