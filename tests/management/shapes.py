"""What `--json` of jobs, workers and the status looks like, and a job in each state."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

from django_once.models.job.settle import settle
from tests.jobs import claim_one, failure, given_back, store, success

TEXT, NUMBER, WHOLE, NOTHING = str, (int, float), int, type(None)
MOMENT = "a moment"
# The keys of `--json`, which programs rely on, with what stands under them.
JOB: dict[str, Any] = {
    "id": TEXT, "backend": TEXT, "task": TEXT, "queue": TEXT, "priority": WHOLE, "state": TEXT,
    "status": TEXT, "reason": TEXT, "blocked_by": TEXT, "delivery": TEXT, "attempt": WHOLE,
    "max_attempts": WHOLE, "failures": WHOLE, "deaths": WHOLE, "max_deaths": WHOLE, "fence": WHOLE,
    "claim": (TEXT, NOTHING), "worker": (TEXT, NOTHING), "worker_name": TEXT,
    "enqueued_at": MOMENT, "run_after": MOMENT, "due_at": MOMENT, "started_at": MOMENT,
    "last_attempted_at": MOMENT, "finished_at": MOMENT, "expires_at": MOMENT,
    "cancel_requested_at": MOMENT, "timeout": (*NUMBER, NOTHING), "key": (TEXT, NOTHING),
    "generation": WHOLE, "limit_key": (TEXT, NOTHING), "batch": (TEXT, NOTHING),
    "channel": (TEXT, NOTHING),
}  # fmt: skip
ENTRY = {
    "at": MOMENT, "kind": TEXT, "attempt": WHOLE, "worker": TEXT, "error": TEXT,
    "traceback": (TEXT, NOTHING),
}  # fmt: skip
WORKER: dict[str, Any] = {
    "id": TEXT, "name": TEXT, "backend": TEXT, "state": TEXT, "host": TEXT, "pid": WHOLE,
    "queues": list, "tasks": list, "concurrency": WHOLE, "running": WHOLE, "version": TEXT,
    "supervisor": (TEXT, NOTHING), "started_at": MOMENT, "renewed_at": MOMENT,
    "leased_until": MOMENT, "lost_at": MOMENT, "stopped_at": MOMENT,
}  # fmt: skip
STATUS = {"version": TEXT, "now": MOMENT, "ok": bool, "problems": list, "backends": list}
BACKEND = {
    "backend": TEXT, "database": TEXT, "queues": list, "at_least": list, "last_minute": dict,
    "workers": dict, "problems": list,
}  # fmt: skip
QUEUE = {
    "queue": TEXT, "ready": WHOLE, "running": WHOLE, "scheduled": WHOLE, "blocked": WHOLE,
    "oldest_ready_seconds": (*NUMBER, NOTHING), "slots": WHOLE,
    "mean_seconds": (*NUMBER, NOTHING), "backlog_seconds": NUMBER,
}  # fmt: skip
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def refuse_difference(found: dict[str, Any], shape: dict[str, Any]) -> None:
    """Refuse other keys, another order of them, and values of another kind."""
    assert list(found) == list(shape)
    for key, kind in shape.items():
        if kind == MOMENT:
            assert found[key] is None or ISO.fullmatch(found[key]), (key, found[key])
        else:
            assert isinstance(found[key], kind), (key, found[key])


def one_of_each() -> dict[str, UUID]:
    """Leave a job in each state; return them by the words for these."""
    jobs = {}
    for state, outcome in (("successful", success), ("failed", failure)):
        jobs[state] = store(args='["secret"]')
        settle("default", [outcome(claim_one())])
    jobs["blocked"] = store()
    settle("default", [given_back(claim_one(), blocked_by="unknown_task")])
    jobs["running"] = store()
    claim_one()
    jobs["scheduled"] = store(run_after=timedelta(hours=1))
    jobs["ready"] = store()
    return jobs
