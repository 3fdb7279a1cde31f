"""Which metrics there are, and how what was measured becomes their samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django_once import __version__, counting
from django_once.contrib.prometheus.text import COUNTER, GAUGE, SUMMARY, Family, quantiles
from django_once.models.job import look
from django_once.models.metrics import Measured
from django_once.models.worker import state_of

SHARES: Final = (0.5, 0.9, 0.99)
STATES: Final = (look.READY, look.SCHEDULED, look.BLOCKED, look.RUNNING)


def families(measured: Iterable[Measured]) -> list[Family]:
    """Return the metrics of these databases."""
    told = _Told()
    told.build.set(1, version=__version__)
    for one in measured:
        _jobs(told, one)
        _times(told, one)
        _workers(told, one)
        _figures(told, one)
        _schedules(told, one)
        for state, locks in one.locks.items():
            told.locks.set(locks, database=one.database, state=state)
        told.horizon.set(one.horizon, database=one.database)
    return told.all


class _Told:
    """The families, each under a name of its own, in the order in which they are written."""

    def __init__(self) -> None:
        self.build = Family("build_info", GAUGE, "Always 1, with the version of django-once.")
        self.attempts = Family(
            "tasks_total", COUNTER,
            "Attempts that ended, by what became of them: successful, failed, retried, snoozed, "
            "cancelled, expired, died, timed_out, lost, superseded, released.",
        )  # fmt: skip
        self.jobs = Family(
            "jobs", GAUGE,
            "Jobs that have not ended, by where they stand; counted up to 100000 of each state.",
        )  # fmt: skip
        self.oldest = Family(
            "oldest_ready_seconds", GAUGE,
            "How long the job that waits longest could have run; 0 where none waits.",
        )  # fmt: skip
        self.backlog = Family(
            "backlog_seconds", GAUGE,
            "How long the slots that take from a queue, or one, need for what is ready and runs.",
        )  # fmt: skip
        self.waited = Family(
            "wait_seconds", SUMMARY,
            "From the moment a job could run to its start, of the last that ended in a minute.",
        )  # fmt: skip
        self.ran = Family(
            "run_seconds", SUMMARY,
            "How long bodies ran, of the last jobs that ended in a minute.",
        )  # fmt: skip
        self.workers = Family("workers", GAUGE, "Worker processes, by whether they are trusted.")
        self.slots = Family("slots", GAUGE, "How many bodies the living workers run at once.")
        self.lost = Family(
            "leases_lost_total", COUNTER, "Workers that were declared lost as their lease lapsed."
        )
        self.superseded = Family(
            "superseded_total", COUNTER, "Attempts whose outcome was dropped: another had the job."
        )
        self.firings = Family(
            "firings_total", COUNTER, "Due moments of schedules, by whether they ran."
        )
        self.next = Family(
            "schedule_late_seconds", GAUGE,
            "How long a schedule should have fired already; 0 where it is on time.",
        )  # fmt: skip
        self.locks = Family("locks", GAUGE, "Locks that were not given back, by their lease.")
        self.horizon = Family(
            "horizon_age_seconds", GAUGE,
            "How long the oldest transaction has been open, which keeps dead rows where they are.",
        )  # fmt: skip

    @property
    def all(self) -> list[Family]:
        return [one for one in vars(self).values() if isinstance(one, Family)]


def _jobs(told: _Told, one: Measured) -> None:
    ran: dict[tuple[str, str], list[float]] = {}
    for sample in one.samples:
        ran.setdefault((sample.backend, sample.queue), []).append(sample.ran)
    alive = [worker for worker in one.workers if state_of(worker, one.now) == "alive"]
    for backend, counts in one.counts.items():
        queues = {count.queue for count in counts}
        for queue in sorted(queues | {queue for alias, queue in ran if alias == backend}):
            for state in STATES:
                told.jobs.set(0, backend=backend, queue=queue, state=state)
            told.oldest.set(0, backend=backend, queue=queue)
            open_jobs = sum(count.jobs for count in counts if count.queue == queue
                            and count.state in (look.READY, look.RUNNING))  # fmt: skip
            lengths = ran.get((backend, queue))
            mean = sum(lengths) / len(lengths) if lengths else 1.0
            slots = sum(worker.concurrency for worker in alive
                        if worker.backend == backend and worker.takes_from(queue))  # fmt: skip
            told.backlog.set(open_jobs * mean / max(1, slots), backend=backend, queue=queue)
        for count in counts:
            told.jobs.set(count.jobs, backend=backend, queue=count.queue, state=count.state)
            if count.state == look.READY and count.due_at is not None:
                age = max(0.0, (one.now - count.due_at).total_seconds())
                told.oldest.set(age, backend=backend, queue=count.queue)


def _times(told: _Told, one: Measured) -> None:
    by_queue: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for sample in one.samples:
        waited, ran = by_queue.setdefault((sample.backend, sample.queue), ([], []))
        waited.append(sample.waited)
        ran.append(sample.ran)
    for (backend, queue), lists in by_queue.items():
        for family, values in zip((told.waited, told.ran), lists, strict=True):
            for share, value in quantiles(values, SHARES).items():
                family.set(value, backend=backend, queue=queue, quantile=share)


def _workers(told: _Told, one: Measured) -> None:
    for backend in one.counts:
        states = [state_of(worker, one.now) for worker in one.workers if worker.backend == backend]
        for state in ("alive", "lapsed"):
            told.workers.set(states.count(state), backend=backend, state=state)
        alive = [worker.concurrency for worker in one.workers
                 if worker.backend == backend and state_of(worker, one.now) == "alive"]  # fmt: skip
        told.slots.set(sum(alive), backend=backend)


def _figures(told: _Told, one: Measured) -> None:
    for backend in one.counts:
        told.lost.set(0, backend=backend)
        told.superseded.set(0, backend=backend)
    for figure in one.figures:
        if figure.name == counting.ATTEMPTS:
            told.attempts.add(
                figure.value, backend=figure.backend, task=figure.task, queue=figure.queue,
                outcome=figure.outcome,
            )  # fmt: skip
        elif figure.name == counting.LEASES_LOST:
            told.lost.set(figure.value, backend=figure.backend)
        elif figure.name == counting.SUPERSEDED:
            told.superseded.set(figure.value, backend=figure.backend)


def _schedules(told: _Told, one: Measured) -> None:
    for schedule in one.schedules:
        labels = {"schedule": schedule.name, "backend": schedule.backend}
        told.firings.set(schedule.fired, **labels, outcome="fired")
        told.firings.set(schedule.skipped, **labels, outcome="skipped")
        is_held = not schedule.enabled or schedule.paused_at is not None
        late = 0.0
        if schedule.fires_at is not None and not is_held:
            late = max(0.0, (one.now - schedule.fires_at).total_seconds())
        told.next.set(late, **labels)
